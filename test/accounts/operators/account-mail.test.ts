/** Sending of the appliance's own mail on both databases: retries, links, and what ends it. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import {
  AccountMailer,
  type AccountLetter,
  type Posted,
} from '../../../src/accounts/operators/account-mail.js'
import { cancelAccountMails, listAccountMails } from '../../../src/accounts/operators/account-mail-store.js'
import { previewLink } from '../../../src/accounts/operators/invitations.js'
import { createOperator } from '../../../src/accounts/operators/operators.js'
import { uuidv7 } from '../../../src/core/ids.js'
import type { Database } from '../../../src/db/database.js'
import { shellOperator } from '../../../src/http/operator.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { eachDatabase } from '../../support/db/database.js'
import { until, untilLater } from '../../support/until.js'

const HOUR_MS = 3_600_000
const FIRST = { limit: 10, offset: 0 }
const accepted: Posted = { kind: 'delivered', reason: 'mx.example.com accepted it', isCaptured: false }
const busy: Posted = { kind: 'deferred', reason: 'mx.example.com answered 450 4.2.1 later' }

/** An account, and a mailer whose attempts end as the test says. */
async function postOffice(t: Test, database: Database, answer: (attempt: number) => Posted) {
  const clock = new FakeClock()
  const random = new SeededRandom()
  const log = new FakeLog()
  const letters: AccountLetter[] = []
  const parts = { database, clock, random, log, newId: () => uuidv7(clock.now(), random.bytes(10)) }
  const { operator } = await createOperator(
    parts,
    { email: 'ann@example.com', grant: { workspaceId: '*', role: 'owner' } },
    'sign_in',
    shellOperator(''),
  )
  const mailer = new AccountMailer({
    ...parts,
    publicUrl: 'https://mail.example.com',
    hostname: 'mail.example.com',
    accountMailFrom: 'postmaster@mail.example.com',
    async postAccountMail(letter) {
      letters.push(letter)
      return answer(letters.length)
    },
  })
  const stopping = new AbortController()
  const running = mailer.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  await database.write(tx =>
    mailer.enqueue(tx, { kind: 'reset', recipient: 'ann@example.com', operatorId: operator.id }),
  )
  return {
    ...{ parts, clock, log, letters, operator },
    lines: async () => (await listAccountMails(database.reader, FIRST)).items,
    /** The token in each letter. */
    links: () =>
      Promise.all(
        letters.map(async ({ message }) => {
          const { text } = await simpleParser(message)
          return /#\/link\/([\w-]{43})\s/.exec(text ?? '')?.[1] ?? ''
        }),
      ),
  }
}

eachDatabase(
  t,
  'a mail that is deferred is tried again, with a link that replaces the one before',
  async (t, database) => {
    const { clock, letters, links, lines, parts } = await postOffice(t, database, attempt =>
      attempt < 3 ? busy : accepted,
    )
    await until('the first attempt to be recorded', async () => (await lines())[0]?.reason !== null)
    t.match(await lines(), [{ state: 'waiting', attempts: 1, reason: busy.reason }])
    for (const attempts of [2, 3]) {
      clock.skip(5 * 60_000)
      await untilLater(clock, `attempt ${attempts}`, async () => {
        const [line] = await lines()
        // While it is tried, it is due again in a quarter of an hour.
        return line?.attempts === attempts && (line.nextAttemptAt ?? 0) < clock.now() + 600_000
      })
    }
    t.match(await lines(), [
      { state: 'delivered', attempts: 3, reason: accepted.reason, nextAttemptAt: null },
    ])
    t.same(
      letters.map(({ attempt }) => attempt),
      [1, 2, 3],
    )
    const tokens = await links()
    t.equal(new Set(tokens).size, 3)
    for (const old of tokens.slice(0, 2)) await t.rejects(previewLink(parts, old), { code: 'unauthorized' })
    t.match(await previewLink(parts, tokens[2] ?? ''), { kind: 'reset', email: 'ann@example.com' })
  },
)

eachDatabase(t, 'a mail that nobody takes in four hours fails', async (t, database) => {
  const { clock, lines } = await postOffice(t, database, () => busy)
  await until('the first attempt', async () => (await lines())[0]?.reason !== null)
  clock.skip(5 * HOUR_MS)
  await untilLater(clock, 'the end', async () => (await lines())[0]?.state === 'failed')
  t.match(await lines(), [{ state: 'failed', reason: busy.reason, nextAttemptAt: null }])
})

eachDatabase(t, 'a mail that is cancelled during an attempt is not tried again', async (t, database) => {
  const { clock, lines, letters, operator } = await postOffice(t, database, () => busy)
  await until('the first attempt', async () => (await lines())[0]?.reason !== null)
  await database.write(tx => cancelAccountMails(tx.db, { operatorId: operator.id }, clock.now()))
  clock.skip(HOUR_MS)
  t.match(await lines(), [{ state: 'cancelled' }])
  t.equal(letters.length, 1)
})
