/** Mail of a template by SMTP: what the fields ask for stands behind the header that came. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { dkimVerdicts, dkimZone } from '../../support/dkim.js'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'

async function open(t: Test) {
  const { postroad, loggedIn, caught, addDomain } = await openSubmissionTest(t)
  const { key } = postroad
  return {
    addDomain,
    loggedIn,
    rowCounts: () => postroad.rowCounts(),
    makeKey: (...options: string[]) => postroad.makeKey(...options),
    contact: (body: object) => postroad.post('/api/v1/contacts', body, { key }),
    remove: (id: string) => postroad.delete(`/api/v1/templates/${id}`, { key }),
    message: async (id: string): Promise<unknown> =>
      (await postroad.get(`/api/v1/email/${id}`, { key })).body.data,
    template: async (html: string) =>
      String((await postroad.post('/api/v1/templates', { name: 'T', html }, { key })).body.data.id),
    received: async (id: string) => {
      const { raw } = await caught(id)
      return Object.assign(await simpleParser(raw), { raw })
    },
  }
}

t.test(
  'the template stands in place of the text, filled in for each recipient, behind the header that came',
  async t => {
    const { template, contact, loggedIn, received, addDomain, message } = await open(t)
    const zone = dkimZone(await addDomain())
    await contact({ email: 'ann@one.test', first_name: 'Änn' })
    const id = await template('<p>Hi {{first_name|friend}}, order {{order.id}}: {{note}}</p>')
    const client = await loggedIn()
    const reply = await client.submit(
      [
        'From: App <app@sender.test>',
        'To: everybody <all@one.test>',
        `X-Postroad-Template: ${id}`,
        'X-Postroad-Data: {"order": {"id": 7},',
        ' "note": "<b>Grüße</b>"}',
        'X-Order: 7',
        'Message-ID: <own@sender.test>',
        'Subject: Order {{order.id}} for {{first_name|you}}',
        'MIME-Version: 1.0',
        'Content-Type: text/plain; charset=us-ascii',
        'Content-Transfer-Encoding: 7bit',
        '',
        'This text is not sent.',
        '',
      ].join('\r\n'),
      { to: ['ann@one.test', 'bob@two.test'] },
    )
    const [ann, bob] = await Promise.all(idsOf(reply).map(received))
    t.match(ann, { subject: 'Order 7 for Änn', messageId: '<own@sender.test>' })
    t.match(ann!.html, '<p>Hi Änn, order 7: &lt;b&gt;Grüße&lt;/b&gt;</p>')
    t.match(ann!.text, /^Hi Änn, order 7: <b>Grüße<\/b>\n/)
    t.match(ann!.html, /href="https:[^"]+\/u\/[^"]+"[^]*Sent with Postroad/)
    t.match(bob, { subject: 'Order 7 for you' })
    t.match(bob!.html, '<p>Hi friend, order 7:')
    for (const mail of [ann!, bob!]) {
      const raw = mail.raw.toString('latin1')
      t.match(raw, 'To: everybody <all@one.test>\r\n')
      t.match(raw, 'X-Order: 7\r\n')
      t.match(raw, 'List-Unsubscribe: <https:')
      t.notMatch(raw, /^X-Postroad-(Template|Data)|not sent|us-ascii/m)
      t.equal(raw.match(/^(Subject|Content-Type: multipart|MIME-Version):?/gm)?.length, 3)
      const verdicts = await dkimVerdicts(mail.raw, zone)
      t.ok(verdicts.length > 0 && verdicts.every(verdict => verdict.endsWith(' pass')), verdicts.join(', '))
    }
    t.match(await message(idsOf(reply)[0]!), { template_id: id })
  },
)

t.test('a footer that is not wanted is left out', async t => {
  const { template, loggedIn, received } = await open(t)
  const id = await template('<p>Hi</p>')
  const client = await loggedIn()
  const [mail = ''] = idsOf(
    await client.submit(
      letter(`X-Postroad-Template: ${id}`, 'X-Postroad-Footer: no', 'X-Postroad-Track: none'),
    ),
  )
  t.equal(String((await received(mail)).html).trim(), '<p>Hi</p>')
})

t.test('what cannot be made is refused with its reason, and nothing is kept', async t => {
  const { template, remove, loggedIn, rowCounts, makeKey } = await open(t)
  const [id, gone] = [
    await template('<p>{{#each list}}{{#each list}}{{/each}}{{/each}}</p>'),
    await template('<p>x</p>'),
  ]
  await remove(gone)
  const sandbox = await loggedIn(await makeKey('--sandbox'))
  t.match(
    await sandbox.submit(letter(`X-Postroad-Template: ${id}`)),
    /^250 /,
    'a sandbox reads live templates',
  )
  const before = rowCounts()['messages']
  const client = await loggedIn()
  const list = JSON.stringify({ list: Array<number>(200).fill(1) }).replaceAll('1,', '1,\r\n ')
  const mixed = 'Content-Type: multipart/mixed; boundary="b"'
  for (const [message, reply] of [
    [letter(`X-Postroad-Template: ${gone}`), /X-Postroad-Template: no template has this id/],
    [letter(`X-Postroad-Template: ${id}`, `X-Postroad-Data: ${list}`), /more than 20000 steps/],
    [letter(`X-Postroad-Template: ${id}`, mixed), /attachments/],
    [
      letter(`X-Postroad-Template: ${id}`).replace('Subject: Hello', 'Subject: {{#if}}'),
      /Subject: line 1, column 1/,
    ],
  ] as const) {
    const answer = await client.submit(message)
    t.match(answer, /^550 5\.6\.0 /)
    t.match(answer, reply)
  }
  t.equal(rowCounts()['messages'], before)
})
