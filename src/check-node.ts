#!/usr/bin/env node
/**
 * The file that `node` runs: refuses a Node.js that is too old in one sentence, then loads the program.
 *
 * Built as `dist/main.js`, with the program beside it as `dist/postroad.js`. The program itself cannot do this: an old Node.js fails while
 * it loads the imports. Only what Node.js 14 understands may stand here.
 */
const [major = 0] = process.versions.node.split('.').map(Number)
if (major < 24) {
  process.stderr.write(
    `postroad: needs Node.js 24 or newer, such as dist/node, and this is ${process.versions.node} (${process.execPath})\n`,
  )
  process.exitCode = 1
} else void import(new URL('./postroad.js', import.meta.url).href)
