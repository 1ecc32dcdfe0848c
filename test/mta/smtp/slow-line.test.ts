/** Time limits on a slow line, per block and for the whole message. */
import t from 'tap'
import { Duplex } from 'node:stream'
import type { SmtpResult } from '../../../src/mta/smtp-result.js'
import { transact } from '../../../src/mta/smtp/smtp-transaction.js'
import type { Socket } from '../../../src/world/net/dial.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { goOn, openTestSession, timeouts } from '../../support/smtp/mta.js'

/** Ten blocks of 64 KB: at 4 KB/s 160 s. */
const MESSAGE = Buffer.from('x'.repeat(1_022).concat('\r\n').repeat(640))
const BLOCKS = 11

/** A server that takes each block of a message in so many ms, and says yes to everything. */
class SlowLine extends Duplex {
  private readonly clock: FakeClock
  private readonly blockMs: number
  private isInMessage = false
  blocks = 0

  constructor(clock: FakeClock, blockMs: number) {
    super()
    this.clock = clock
    this.blockMs = blockMs
    this.push('220 mx.example ESMTP\r\n')
  }

  override _read(): void {
    // Replies come when there is something to reply to.
  }

  override _write(octets: Buffer, _encoding: string, taken: () => void): void {
    if (this.isInMessage) {
      this.clock.after(this.blockMs, () => {
        this.blocks += 1
        if (octets.toString('latin1').endsWith('.\r\n')) this.push('250 ok\r\n')
        taken()
      })
      return
    }
    this.isInMessage = octets.toString('latin1') === 'DATA\r\n'
    this.push(this.isInMessage ? '354 go on\r\n' : '250 ok\r\n')
    taken()
  }
}

/** @returns the outcome, its duration, and the number of blocks taken */
async function sendOver(blockMs: number) {
  const clock = new FakeClock()
  const line = new SlowLine(clock, blockMs)
  const dialler = {
    connect: async () => line as unknown as Socket,
    secure: () => Promise.reject(new Error('no TLS here')),
  }
  const session = await openTestSession(clock, dialler)
  const envelope = { sender: 'a@sender.example', recipient: 'ann@example.com' }
  const startedAt = clock.monotonic()
  let ended: { readonly end: SmtpResult; readonly seconds: number } | undefined
  void transact(session, envelope, MESSAGE, {
    ...{ timeouts, clock, deadline: Infinity, reset: false, signal: goOn },
  }).then(end => (ended = { end, seconds: (clock.monotonic() - startedAt) / 1_000 }))
  for (let second = 0; second < 3_600 && ended === undefined; second += 1) await clock.advance(1_000)
  if (!ended) throw new Error('it lasted an hour')
  return { ...ended, blocks: line.blocks }
}

t.test('a line of 4 KB/s is fast enough', async t => {
  const { end, seconds, blocks } = await sendOver(16_000)
  t.match(end, { accepted: true, stage: 'final_dot' })
  t.equal(blocks, BLOCKS)
  t.equal(seconds, 16 * BLOCKS)
})

t.test('a slower line is abandoned even if each block is within its limit', async t => {
  const { end, seconds, blocks } = await sendOver(100_000)
  t.match(end, { accepted: false, stage: 'data', failure: { kind: 'timeout' } })
  t.equal(seconds, 180 + 160, 'the time of one block, and of the whole message at 4 KB/s')
  t.equal(blocks, 3)
})

t.test('a block that exceeds its limit ends the transfer', async t => {
  const { end, seconds } = await sendOver(200_000)
  t.match(end, { accepted: false, stage: 'data', failure: { kind: 'timeout' } })
  t.equal(seconds, 180)
})
