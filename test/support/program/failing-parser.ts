/**
 * The program of a reading thread that breaks over some mails: `DIE` ends it, `SPIN` never ends, `THROW` is a fault of the reader; any other
 * mail is an automatic reply.
 */
import { serveParser } from '../../../src/inbound/reading/read-inbound-mail.js'
import { ownThread } from '../../../src/world/threads.js'

serveParser(ownThread(), async source => {
  const text = source.toString()
  if (text.includes('THROW')) throw new Error('cannot make sense of it')
  if (text.includes('SPIN')) await new Promise(() => {})
  // Where nobody can catch it.
  if (text.includes('DIE'))
    await new Promise(() => {
      queueMicrotask(() => {
        throw new Error('out of the blue')
      })
    })
  return { kind: 'auto_reply', recipients: [], form: 'test' }
})
