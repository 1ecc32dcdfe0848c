#!/usr/bin/env node
/** The program: hands the real world to the command line. `check-node.ts` loads it. */
import { fstatSync } from 'node:fs'
import { relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { runCli } from './cli/program.js'
import { environment } from './config/environment.js'
import { limitHeapGrowth } from './world/heap.js'
import { systemWorld } from './world/world.js'

// Files (keys, mail, the database) are readable by this user only.
process.umask(0o077)
limitHeapGrowth()

// `postroad top | head`: the reader is gone. Further output is discarded; the command ends normally.
let isOutputClosed = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  isOutputClosed = true
})
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

void runCli(process.argv.slice(2), {
  program: programName(process.argv[1]),
  env: environment,
  world: systemWorld(environment['JOURNAL_STREAM']),
  print: text => {
    if (!isOutputClosed) process.stdout.write(`${text}\n`)
  },
  isOutputClosed: () => isOutputClosed,
  isTerminal: process.stdout.isTTY,
  ...(isPipedIn() ? { input: () => process.stdin } : {}),
  complain: text => process.stderr.write(`${text}\n`),
  ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
}).then(status => {
  process.exitCode = status
})

/** `node dist/main.js` from a source tree, else the installed command. */
function programName(script: string | undefined): string {
  return script?.endsWith('main.js') === true ? `node ${relative(process.cwd(), script)}` : 'postroad'
}

/** A pipe or a file: not a terminal, and not /dev/null, which services and cron jobs have. */
function isPipedIn(): boolean {
  try {
    const input = fstatSync(0)
    return input.isFIFO() || input.isFile() || input.isSocket()
  } catch {
    return false
  }
}

/** On standard error, since standard output may be led elsewhere. */
async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question)
  } finally {
    terminal.close()
  }
}
