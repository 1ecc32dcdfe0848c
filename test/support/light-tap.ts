/**
 * Spares test files what tap does beside testing; `make` has every process that tap starts load this first.
 *
 * tap would have each module that is loaded noted for coverage and mocks, which nothing here uses, look for its source map at the end, and
 * follow each promise from its making to its collection, to tell which test an error is of that nobody caught. Together that was a
 * third of a run. Without it such an error ends its file, which says so. A file that is run by `tap` alone, without
 * this, passes and fails the same.
 */
import asyncHooks from 'node:async_hooks'
import { writeSync } from 'node:fs'
import module, { syncBuiltinESMExports } from 'node:module'
import { inspect } from 'node:util'
import { isMainThread } from 'node:worker_threads'
import { noteOnExit } from './suites/note-times.js'

Object.assign(module, { register: () => undefined, registerHooks: () => ({ deregister() {} }) })
Object.assign(asyncHooks, { createHook: () => ({ enable() {}, disable() {} }) })
syncBuiltinESMExports()

// The file ends there; anything missing from its report is lost.
process.on('uncaughtExceptionMonitor', error => {
  if (isMainThread && process.env['TAP'] === '1')
    writeSync(1, `\nnot ok - uncaught ${inspect(error).replaceAll('\n', '\n# ')}\n`)
})

noteOnExit()
