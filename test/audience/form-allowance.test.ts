/** What forms may cause: mails to one mailbox, and how a flood from a few networks leaves room for everybody else. */
import t from 'tap'
import { FormAllowance } from '../../src/audience/forms/form-allowance.js'
import type { Form } from '../../src/audience/forms/form.js'
import { likelyMailbox } from '../../src/mail/address.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const form = { id: 'f1', workspaceId: 'w1' } as Form
const HOUR_MS = 3_600_000

t.test('all spellings of an address lead to one mailbox', t => {
  for (const address of ['ann@gmail.com', 'A.N.N@gmail.com', 'ann+1@googlemail.com', 'a.nn+x+y@GMAIL.com'])
    t.equal(likelyMailbox(address), 'ann@gmail.com')
  t.equal(likelyMailbox('a.nn+x@shop.example'), 'a.nn@shop.example')
  t.equal(likelyMailbox('+x@shop.example'), '+x@shop.example')
  t.end()
})

t.test(
  'a mailbox has five confirmations in a day, from whatever network, and those not sent do not count',
  async t => {
    const clock = new FakeClock()
    const allowance = new FormAllowance(clock)
    const ask = (n: number) => allowance.takeConfirmation(form, `198.51.${n}.1`, `victim+${n}@shop.example`)
    for (let n = 0; n < 5; n += 1) t.ok(ask(n))
    for (let n = 5; n < 50; n += 1) t.equal(ask(n), undefined)
    t.ok(allowance.takeConfirmation({ ...form, workspaceId: 'w2' }, '198.51.1.1', 'victim@shop.example'))
    await clock.advance(25 * HOUR_MS)
    const giveBack = ask(1)
    giveBack?.()
    for (let n = 0; n < 5; n += 1) t.ok(ask(n))
  },
)

t.test('a flood from a few networks stops there, and lets visitors from elsewhere in', async t => {
  const allowance = new FormAllowance(new FakeClock())
  const ask = (network: number, n: number) =>
    allowance.takeConfirmation(form, `203.0.${network}.${n}`, `victim${network}-${n}@shop.example`)
  for (let network = 0; network < 5; network += 1) {
    for (let n = 0; n < 60; n += 1) t.ok(ask(network, n), '60 of each network are sent')
    t.throws(() => ask(network, 60), { code: 'rate_limited' })
  }
  for (let network = 5; network < 10; network += 1) {
    for (let n = 0; n < 2; n += 1) t.ok(ask(network, n), 'after 300, two of each network')
    t.throws(() => ask(network, 2), { code: 'unavailable' })
  }
  for (let n = 0; n < 100; n += 1) {
    await allowance.takeSubmission(form.id, `192.0.${n}.7`)
    t.ok(allowance.takeConfirmation(form, `192.0.${n}.7`, `visitor${n}@shop.example`))
  }
})

t.test('a form sent 600 times a minute by a few addresses still takes what others send', async t => {
  const allowance = new FormAllowance(new FakeClock())
  const send = (address: number) => allowance.takeSubmission(form.id, `203.0.${address}.1`)
  for (let address = 0; address < 30; address += 1)
    for (let n = 0; n < 20; n += 1) await t.resolves(send(address), '20 of each address are accepted')
  for (let address = 30; address < 40; address += 1) {
    for (let n = 0; n < 2; n += 1) await t.resolves(send(address), 'after 600, two of each network')
    await t.rejects(send(address), { code: 'unavailable' })
  }
  await t.resolves(allowance.takeSubmission(form.id, '192.0.2.1'), 'a visitor is let in')
})
