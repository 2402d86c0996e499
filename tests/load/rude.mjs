// Clients nobody wants: node rude.mjs PORT SECONDS. Some send a byte now and then, some never read
// what they asked for, some vanish in the middle.
import net from "node:net";

const [port, seconds] = process.argv.slice(2).map(Number);
const sockets = [];
function connect(first, every) {
  const socket = net.connect(port, "127.0.0.1", () => { if (first) socket.write(first); });
  socket.on("error", () => {});
  sockets.push(socket);
  if (every) socket.timer = setInterval(() => socket.writable && socket.write(every), 300);
  return socket;
}
for (let i = 0; i < 40; ++i) connect("GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "a");
for (let i = 0; i < 20; ++i) connect("POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n", "[");
for (let i = 0; i < 20; ++i) connect("GET /v1/overview HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(4)).pause();
const churn = setInterval(() => { const s = connect('POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n{"exa'); setTimeout(() => s.destroy(), 50); }, 40);
setTimeout(() => { clearInterval(churn); for (const s of sockets) { clearInterval(s.timer); s.destroy(); } process.exit(0); }, seconds * 1000);
