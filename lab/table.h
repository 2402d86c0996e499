#pragma once

#include <optional>
#include <string>
#include <vector>

namespace marginmerge::lab {

/// One entry: what we measured, and what the paper published for the same cell.
struct Cell {
    enum class Mark { none, best, near };
    std::string text;             ///< as printed; "" is an empty cell
    std::optional<double> paper;  ///< the paper's number, if it has this cell
    Mark mark = Mark::none;
    bool italic = false;
};

/// A table in the paper's layout: named column groups over columns, rows in bands.
struct Table {
    struct Group {
        std::string title;
        std::size_t columns = 1;
    };
    struct Row {
        std::string name;
        std::vector<Cell> cells;
        bool band = false;    ///< a heading across the table (cells empty)
        bool shaded = false;  ///< the method the table is about
    };
    std::string id;  ///< file name
    std::string title, caption;
    std::string head = "Method";  ///< over the row names
    std::vector<Group> groups;    ///< over the columns; empty: none
    std::vector<std::string> columns;
    std::vector<Row> rows;
    int digits = 3;  ///< of the paper's numbers when printed beside ours
};

/// ".927" for 0.927, as the paper prints shares.
std::string short_number(double value, int digits = 3);
/// "+.024".
std::string signed_number(double value, int digits = 3);

std::string to_markdown(const Table& table);
std::string to_latex(const Table& table);
std::string to_html(const Table& table);
std::string to_csv(const Table& table);

/// A field of a comma-separated line.
std::string csv_field(const std::string& text);

/// Marks the largest of these values in each column and those within `near` of it. `values[row][column]`; rows that are
/// not to be ranked are empty.
void mark_best(Table& table, const std::vector<std::vector<std::optional<double>>>& values, double near = 0.005);

}  // namespace marginmerge::lab
