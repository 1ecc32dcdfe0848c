/**
 * The work of the reading thread: takes requests, reads their mails one after the other, answers for each.
 *
 * Called by `parser-main.ts`. Fails: never for a mail that only cannot be read, which is a finding like others.
 */
import { describeError } from '../../core/errors.js'
import type { OwnThread } from '../../world/threads.js'
import type { MailFinding, ParseAnswer, ParseRequest, ParseTask } from './parser-protocol.js'
import { readInboundMail, type ReadReturned } from './read-inbound-mail.js'

export function serveParser(thread: OwnThread, readReturned: ReadReturned): void {
  const answer = (value: ParseAnswer): void => thread.post(value)
  let turn = Promise.resolve()
  thread.listen(message => {
    const { number, tasks } = message as ParseRequest
    turn = turn.then(async () => {
      for (const task of tasks) answer({ kind: 'read', number, finding: await read(task, readReturned) })
    })
  })
  answer({ kind: 'ready' })
}

async function read(task: ParseTask, readReturned: ReadReturned): Promise<MailFinding> {
  try {
    return await readInboundMail(task, readReturned)
  } catch (error) {
    return { fault: describeError(error).slice(0, 200) }
  }
}
