// Pages from PDFs and text files: words, boxes, images, and files that mean harm.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "encode/page_reader.h"
#include "encode/page_wire.h"
#include "encode/pdf.h"
#include "encode/source.h"
#include "encode/text_pages.h"
#include "marginmerge/core/error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

/// A PDF of one page of 200 x 400 points with "Hello world" at (20, 350 from the bottom) in 20-point Courier:
/// every character is 12 points wide.
std::string small_pdf(const std::string& page_extra = "", const std::string& box = "[0 0 200 400]") {
    const std::string drawing = "BT /F1 20 Tf 20 350 Td (Hello world) Tj 0 -100 Td (below) Tj ET\n";
    std::string pdf = "%PDF-1.4\n";
    std::vector<std::size_t> offsets;
    const auto object = [&](const std::string& body) {
        offsets.push_back(pdf.size());
        pdf += fmt::format("{} 0 obj\n{}\nendobj\n", offsets.size(), body);
    };
    object("<< /Type /Catalog /Pages 2 0 R >>");
    object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    object(
        fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox {} /Contents 5 0 R {} "
                    "/Resources << /Font << /F1 4 0 R >> >> >>",
                    box, page_extra));
    object("<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>");
    object(fmt::format("<< /Length {} >>\nstream\n{}endstream", drawing.size(), drawing));
    object("<< /Title (A small file) >>");
    const std::size_t table = pdf.size();
    pdf += fmt::format("xref\n0 {}\n0000000000 65535 f \n", offsets.size() + 1);
    for (const auto offset : offsets) pdf += fmt::format("{:010} 00000 n \n", offset);
    pdf += fmt::format("trailer << /Size {} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{}\n%%EOF\n", offsets.size() + 1,
                       table);
    return pdf;
}

Box box_of(const PageText& page, const std::string& word) {
    const auto at = static_cast<std::uint32_t>(page.text.find(word));
    return page.box_of(at, at + static_cast<std::uint32_t>(word.size()));
}

TEST(Pdf, WordsStandWhereTheyArePrinted) {
    const auto file = PdfFile::from_bytes(small_pdf(), "small.pdf");
    EXPECT_EQ(file.pages(), 1U);
    EXPECT_EQ(file.title(), "A small file");
    const PageText page = file.text(0);
    EXPECT_EQ(page.text, "Hello world\nbelow");
    const Box world = box_of(page, "world");
    EXPECT_NEAR(world[0], (20 + 6 * 12) / 200.0, 0.01);
    EXPECT_NEAR(world[2], (20 + 11 * 12) / 200.0, 0.01);
    EXPECT_LT(world[1], 50 / 400.0);  // the baseline is 50 points below the top
    EXPECT_GT(world[3], 50 / 400.0);
    const Box part = box_of(page, "rl");
    EXPECT_NEAR(part[0], (20 + 8 * 12) / 200.0, 0.01);
    EXPECT_NEAR(part[2], (20 + 10 * 12) / 200.0, 0.01);
    EXPECT_GT(box_of(page, "below")[1], world[3]);
}

TEST(Pdf, RotatedPagesTurnTheirBoxes) {
    const auto file = PdfFile::from_bytes(small_pdf("/Rotate 90"), "turned.pdf");
    EXPECT_NEAR(file.size(0).width, 400, 0.1);
    EXPECT_NEAR(file.size(0).height, 200, 0.1);
    const Box world = box_of(file.text(0), "world");
    // Turned clockwise: what was near the top is near the right edge, and left to right became top to bottom.
    EXPECT_GT(world[0], 0.8);
    EXPECT_NEAR(world[1], (20 + 6 * 12) / 200.0, 0.02);
}

TEST(Pdf, ImageShowsInkWhereTheTextIs) {
    const auto file = PdfFile::from_bytes(small_pdf(), "small.pdf");
    const Image image = file.render(0, 800);
    EXPECT_EQ(image.height, 800U);
    EXPECT_EQ(image.width, 400U);
    const Box hello = box_of(file.text(0), "Hello");
    const auto darkest = [&](double left, double top, double right, double bottom) {
        int least = 255;
        for (auto y = static_cast<std::uint32_t>(top * image.height); y < bottom * image.height; ++y)
            for (auto x = static_cast<std::uint32_t>(left * image.width); x < right * image.width; ++x)
                least = std::min<int>(least, image.row(y)[3 * x]);
        return least;
    };
    EXPECT_LT(darkest(hello[0], hello[1], hello[2], hello[3]), 100);
    EXPECT_EQ(darkest(0, 0.5, 1, 1), 255);
}

TEST(Pdf, BrokenFilesAreErrors) {
    EXPECT_THROW(PdfFile::from_bytes("", "x"), Error);
    EXPECT_THROW(PdfFile::from_bytes("%PDF-1.4\nnothing", "x"), Error);
    EXPECT_THROW(PdfFile::from_bytes(small_pdf("", "[0 0 1000000000 1000000000]"), "huge").render(0, 100), Error);
    const std::string whole = small_pdf();
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
        std::string broken = whole.substr(0, round % 4 == 0 ? random() % whole.size() : whole.size());
        for (int k = 0; k < 3 && !broken.empty(); ++k) broken[random() % broken.size()] = static_cast<char>(random());
        try {
            const auto file = PdfFile::from_bytes(broken, "broken.pdf");
            for (std::size_t p = 0; p < std::min<std::size_t>(file.pages(), 3); ++p) {
                file.text(p);
                file.render(p, 100);
            }
        } catch (const Error&) {
        }
    }
}

TEST(TextPages, LinesWrapAndPagesBreak) {
    const auto pages = paginate("one two\n\tthree\r\nfour\fnext page");
    ASSERT_EQ(pages.size(), 2U);
    EXPECT_EQ(pages[0].text, "one two\n        three\nfour");
    EXPECT_EQ(pages[1].text, "next page");
    const Box one = box_of(pages[0], "one"), three = box_of(pages[0], "three");
    EXPECT_LT(one[1], three[1]);
    EXPECT_LT(one[0], three[0]);
    EXPECT_EQ(paginate(std::string(250, 'x')).at(0).text,
              std::string(100, 'x') + "\n" + std::string(100, 'x') + "\n" + std::string(50, 'x'));
    std::string lines;
    for (int i = 0; i < 130; ++i) lines += "line\n";
    EXPECT_EQ(paginate(lines).size(), 3U);
    EXPECT_TRUE(paginate(" \n\n \t").empty());
    EXPECT_EQ(paginate("caf\xC3\xA9 \xff").at(0).text, "caf\xC3\xA9 \xEF\xBF\xBD");
}

TEST(TextPages, ImageHasInkInTheBoxes) {
    const auto page = paginate("\n\n\n     WWWWW\n").at(0);
    const Image image = render_text_page(page, 792);
    const Box box = box_of(page, "WWWWW");
    std::size_t inside = 0, outside = 0;
    for (std::uint32_t y = 0; y < image.height; ++y) {
        for (std::uint32_t x = 0; x < image.width; ++x) {
            if (image.row(y)[3 * x] > 128) continue;
            const double fx = (x + 0.5) / image.width, fy = (y + 0.5) / image.height;
            const bool in = fx >= box[0] && fx <= box[2] && fy >= box[1] && fy <= box[3];
            (in ? inside : outside) += 1;
        }
    }
    EXPECT_GT(inside, 50U);
    EXPECT_LT(outside, inside / 20);
}

TEST(Source, FilesAndFolders) {
    const test::TemporaryDirectory folder;
    std::filesystem::create_directories(folder / "in/sub");
    std::ofstream(folder / "in/b.txt") << "text";
    std::ofstream(folder / "in/sub/a.pdf") << small_pdf();
    std::ofstream(folder / "in/ignored.bin") << "x";
    std::ofstream(folder / "b.txt") << "other";
    const auto files = list_sources({folder / "in", folder / "b.txt", folder / "b.txt"});
    ASSERT_EQ(files.size(), 3U);
    EXPECT_EQ(files[1].name, "sub/a.pdf");
    EXPECT_NE(files[0].name, files[2].name);  // two b.txt: told apart by their paths
    EXPECT_THROW(list_sources({folder / "missing"}), Error);
    EXPECT_EQ(open_source(folder / "in/sub/a.pdf", {})->pages(), 1U);
    const Page page = open_source(folder / "in/sub/a.pdf", {})->load(0, {0, true});
    EXPECT_TRUE(page.image.empty());
    EXPECT_EQ(page.title, "A small file");
}

TEST(Source, WhatCannotBeReadSaysWhy) {
    const test::TemporaryDirectory folder;
    const auto says = [&](const std::string& name, const std::string& content, const SourceLimits& limits) {
        std::ofstream(folder / name, std::ios::binary) << content;
        try {
            open_source(folder / name, limits);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_THAT(says("empty.pdf", "", {}), testing::HasSubstr("empty"));
    EXPECT_THAT(says("broken.pdf", "no pdf at all", {}), testing::HasSubstr("expected a PDF"));
    EXPECT_THAT(says("broken.png", "no image", {}), testing::HasSubstr("expected PNG"));
    EXPECT_THAT(says("binary.txt", std::string("a\0b", 3), {}), testing::HasSubstr("binary"));
    EXPECT_THAT(says("blank.txt", " \n ", {}), testing::HasSubstr("blanks"));
    SourceLimits tight;
    tight.most_bytes = 3;
    EXPECT_THAT(says("large.txt", "large", tight), testing::HasSubstr("at most 3 bytes"));
    tight = {};
    tight.most_pages = 1;
    EXPECT_THAT(says("long.txt", "a\fb", tight), testing::HasSubstr("at most 1 pages"));
}

TEST(PageReader, AnotherProcessGivesTheSamePages) {
    const test::TemporaryDirectory folder;
    std::ofstream(folder / "a.pdf") << small_pdf();
    std::ofstream(folder / "broken.pdf") << "%PDF-";
    ReaderOptions there;
    there.command = {MARGINMERGE_BINARY, "encode-reader"};
    PageReader remote(there), local(ReaderOptions{});
    EXPECT_EQ(remote.pages(folder / "a.pdf"), 1U);
    const Page a = remote.load(folder / "a.pdf", 0, {200, true}), b = local.load(folder / "a.pdf", 0, {200, true});
    EXPECT_EQ(a.text.text, b.text.text);
    EXPECT_EQ(a.image.pixels, b.image.pixels);
    EXPECT_EQ(a.title, b.title);
    EXPECT_EQ(a.text.box_of(0, 5), b.text.box_of(0, 5));
    EXPECT_THROW(remote.load(folder / "a.pdf", 1, {0, true}), Error);
    try {
        remote.pages(folder / "broken.pdf");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("expected a PDF file"));  // its own words, from over there
    }
    EXPECT_EQ(remote.pages(folder / "a.pdf"), 1U);
}

TEST(PageReader, ACrashOrASilentReaderIsAnError) {
    ReaderOptions options;
    options.command = {"/bin/false"};
    PageReader dead(options);
    EXPECT_THROW(dead.pages("x.pdf"), Error);
    EXPECT_THROW(dead.load("x.pdf", 0, {}), Error);  // a fresh process each time, the same end
    options.command = {"/bin/sleep", "100"};
    options.seconds = 0.2;
    PageReader silent(options);
    EXPECT_THROW(silent.pages("x.pdf"), Error);
    options.command = {"/does/not/exist"};
    EXPECT_THROW(PageReader(options).pages("x.pdf"), Error);
}

TEST(PageWire, GarbageIsNoMessage) {
    PageAnswer answer;
    answer.pages = 3;
    answer.page.title = "title";
    answer.page.text.text = "abc";
    answer.page.text.spans = {{0, 3, {0, 0, 1, 1}}};
    answer.page.image = Image(2, 2);
    const std::string whole = pack(answer);
    PageAnswer back;
    ASSERT_TRUE(unpack(whole, back));
    EXPECT_EQ(back.page.title, "title");
    for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(unpack(whole.substr(0, n), back)) << n;
    std::mt19937 random(4);
    for (int round = 0; round < 2000; ++round) {
        std::string broken = whole;
        for (int k = 0; k < 3; ++k) broken[random() % broken.size()] = static_cast<char>(random());
        PageAnswer read;
        unpack(broken, read);
        PageQuestion question;
        unpack(broken, question);
    }
}

}  // namespace
}  // namespace marginmerge
