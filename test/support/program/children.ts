/** Child processes that end with the test that started them, also when it fails, throws or is timed out. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Scope } from '../scope.js'

const children = new Set<ChildProcess>()

function killAll(): void {
  for (const child of children) child.kill('SIGKILL')
}

process.once('exit', killAll)
// How the runner ends a test file that takes too long; without a handler there would be no `exit`.
process.once('SIGTERM', () => {
  killAll()
  process.exit(143)
})

/** Kills it when the test ends, if it still runs then, and waits until it is gone. */
export function endWithTest(t: Scope, child: ChildProcess): void {
  children.add(child)
  const closed = once(child, 'close').finally(() => children.delete(child))
  // A program that cannot be started has an `error` and maybe no `close`; whoever waits for its work will say so.
  closed.catch(() => {})
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed.catch(() => {})
  })
}
