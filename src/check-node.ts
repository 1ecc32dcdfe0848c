#!/usr/bin/env node
/**
 * Entry point: rejects a Node.js that is too old with a one-line message, otherwise loads the program.
 *
 * Built as `dist/main.js`, with the program beside it as `dist/postroad.js`. The program cannot check this itself: an old Node.js fails on its
 * imports. Use only syntax that Node.js 14 understands.
 */
const [major = 0] = process.versions.node.split('.').map(Number)
if (major < 24) {
  process.stderr.write(
    `postroad: needs Node.js 24 or newer, such as dist/node, and this is ${process.versions.node} (${process.execPath})\n`,
  )
  process.exitCode = 1
} else void import(new URL('./postroad.js', import.meta.url).href)
