/** What forms may cause: mails to one mailbox, and how a flood from a few networks leaves room for everybody else. */
import t from 'tap'
import { FormAllowance, type Asking } from '../../src/audience/forms/form-allowance.js'
import { addressInMail, nameInMail } from '../../src/audience/forms/name-in-mail.js'
import { likelyMailbox } from '../../src/mail/address.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const FORM = { id: 'f1', workspaceId: 'w1' }
/** A visitor's submission of a form in a workspace without limits. */
const asking = (address: string, more: Partial<Asking> = {}): Asking => ({
  form: FORM,
  hourlyLimit: 0,
  dailyLimit: 0,
  address,
  ...more,
})
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
    const ask = (n: number) => allowance.takeConfirmation(asking(`198.51.${n}.1`), `victim+${n}@shop.example`)
    for (let n = 0; n < 5; n += 1) t.ok(ask(n))
    for (let n = 5; n < 50; n += 1) t.equal(ask(n), undefined)
    const other = asking('198.51.1.1', { form: { id: 'f2', workspaceId: 'w2' } })
    t.ok(allowance.takeConfirmation(other, 'victim@shop.example'))
    await clock.advance(25 * HOUR_MS)
    const giveBack = ask(1)
    giveBack?.()
    for (let n = 0; n < 5; n += 1) t.ok(ask(n))
  },
)

t.test('a flood from a few networks stops there, and lets visitors from elsewhere in', async t => {
  const allowance = new FormAllowance(new FakeClock())
  const ask = (network: number, n: number) =>
    allowance.takeConfirmation(asking(`203.0.${network}.${n}`), `victim${network}-${n}@shop.example`)
  for (let network = 0; network < 5; network += 1) {
    for (let n = 0; n < 60; n += 1) t.ok(ask(network, n), '60 of each network are sent')
    t.throws(() => ask(network, 60), { code: 'rate_limited' })
  }
  for (let network = 5; network < 10; network += 1) {
    for (let n = 0; n < 2; n += 1) t.ok(ask(network, n), 'after 300, two of each network')
    t.throws(() => ask(network, 2), { code: 'unavailable' })
  }
  for (let n = 0; n < 100; n += 1) {
    await allowance.takeSubmission(FORM.id, `192.0.${n}.7`)
    t.ok(allowance.takeConfirmation(asking(`192.0.${n}.7`), `visitor${n}@shop.example`))
  }
})

t.test('a form sent 600 times a minute by a few addresses still takes what others send', async t => {
  const allowance = new FormAllowance(new FakeClock())
  const send = (address: number) => allowance.takeSubmission(FORM.id, `203.0.${address}.1`)
  for (let address = 0; address < 30; address += 1)
    for (let n = 0; n < 20; n += 1) await t.resolves(send(address), '20 of each address are accepted')
  for (let address = 30; address < 40; address += 1) {
    for (let n = 0; n < 2; n += 1) await t.resolves(send(address), 'after 600, two of each network')
    await t.rejects(send(address), { code: 'unavailable' })
  }
  await t.resolves(allowance.takeSubmission(FORM.id, '192.0.2.1'), 'a visitor is let in')
})

t.test('a workspace has a share, a quarter of its limits, whatever number of forms it has', t => {
  const ask = (allowance: FormAllowance, limits: Partial<Asking>, n: number) => {
    const form = { id: `form ${n}`, workspaceId: 'w1' }
    return allowance.takeConfirmation(
      asking(`192.${n % 200}.${n}.7`, { form, ...limits }),
      `p${n}@shop.example`,
    )
  }
  for (const [limits, share] of [
    [{ hourlyLimit: 400 }, 100],
    [{ hourlyLimit: 400, dailyLimit: 200 }, 50],
    [{ hourlyLimit: 1 }, 20],
    [{}, 2_000],
  ] as const) {
    const allowance = new FormAllowance(new FakeClock())
    let sent = 0
    t.throws(
      () => {
        for (let n = 0; n < 3_000; n += 1) if (ask(allowance, limits, n)) sent += 1
      },
      { code: 'unavailable' },
    )
    t.equal(sent, share)
  }
  const allowance = new FormAllowance(new FakeClock())
  const from = (network: number, n: number) =>
    allowance.takeConfirmation(
      asking(`203.0.${network}.${n}`, { hourlyLimit: 40 }),
      `f${network}-${n}@a.example`,
    )
  for (let n = 0; n < 10; n += 1) t.ok(from(1, n), 'half of the share goes to one network')
  t.throws(() => from(1, 10), { code: 'unavailable' })
  t.ok(from(2, 1), 'the rest is for the others')
  t.end()
})

t.test('a mailbox has a share of all workspaces too', t => {
  const allowance = new FormAllowance(new FakeClock())
  const ask = (workspace: number, n: number) =>
    allowance.takeConfirmation(
      asking(`198.51.${workspace}.${n}`, { form: { id: `f${workspace}`, workspaceId: `w${workspace}` } }),
      'victim@shop.example',
    ) !== undefined
  const sent = Array.from({ length: 100 }, (_, workspace) =>
    Array.from({ length: 5 }, (_, n) => ask(workspace, n)).filter(Boolean),
  )
  t.equal(sent.flat().length, 40)
  t.same(
    sent.slice(0, 6).map(({ length }) => length),
    [5, 5, 5, 5, 1, 1],
    'after twenty, a workspace that sent none yet has one',
  )
  t.end()
})

t.test('the name in a confirmation mail is no advertisement', t => {
  const own = 'news.booking.com'
  for (const name of [
    'Corner Shop',
    'Novo Nordisk A/S',
    'Verein e.V.',
    'Rossi S.p.A.',
    'Booking.com',
    'Yahoo!',
  ])
    t.equal(nameInMail(name, own), name)
  for (const name of [
    'Win at https://evil.example/x',
    'see evil.com',
    '(WWW.EVIL.COM)',
    'evil.com/offer?x',
    'evil\u3002com',
    'ｅｖｉｌ．ｃｏｍ',
    'write to ann@evil.com',
    'evil.com.',
    'x|evil.com|y',
    'bücher.example',
    '\t\n',
  ])
    t.equal(nameInMail(name, own), own, name)
  const long = nameInMail('Buy now '.repeat(30), own)
  t.equal(long.length, 60)
  t.equal(nameInMail('Two\r\nlines', own), 'Two lines')
  t.equal(addressInMail('1 Main St.\nSpringfield', own), '1 Main St.\nSpringfield')
  t.equal(addressInMail('1 Main St.\nhttps://evil.example', own), '')
  t.equal(addressInMail('Buy now '.repeat(30), own), '')
  t.end()
})
