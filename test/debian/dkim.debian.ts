/** Mail from the API, received by Postfix's smtp-sink and verified by independent DKIM implementations. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { openSmtpSink, openVerifiers } from '../support/program/debian.js'
import { dkimZone, type PublishedDomain } from '../support/dkim.js'
import { initialise, routeTo } from '../support/program/process.js'

const long = `${'Grüße aus Köln '.repeat(334)}!`
const corpus: Readonly<
  Record<string, { subject: string; html?: string; text?: string; from_name?: string }>
> = {
  'HTML with long lines, NBSP and emoji': {
    subject: 'Ihre Bestellung – Größe 42 ✓ 日本語',
    from_name: 'Müller, "Söhne" & Co 🚚',
    html: `<p>${long}</p>\n<p>${'x'.repeat(5_000)}</p>\n<p>a\u{a0}b \u{1f4ec}</p>\n`,
  },
  'HTML that is indented, with white space at line ends': {
    subject: 'Indented',
    html: '<table>\n\t<tr>  \n\t\t<td>   two   words\t\tand more </td> \n    </tr>\n</table>\n\n'.repeat(40),
  },
  'text with dots at line starts and blank lines at the end': {
    subject: 'Dots',
    text: '.\n..\n.dot\nFrom here\n\n \n\t\n\n\n',
  },
  'white space at line ends': { subject: '  two  spaces ', text: 'a  b \nc\t\n  d\n' },
  'a subject of 998 characters': { subject: 'word '.repeat(199).trimEnd(), text: 'x' },
}

t.test(
  'mail accepted by the API arrives intact at smtp-sink, with a signature that three verifiers accept',
  async t => {
    const sink = await openSmtpSink(t)
    const postroad = await initialise(t, { env: routeTo(sink.port) })
    const domain = await postroad.json<PublishedDomain>(
      ...['domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId],
    )
    const verifiers = await openVerifiers(t, dkimZone(domain))
    const server = await postroad.serve()
    for (const [index, [name, content]] of Object.entries(corpus).entries())
      await t.test(name, async t => {
        const to = `user${index}@one.test`
        const { body } = await server.send(postroad.key, { to, from_email: 'me@sender.test', ...content })
        const id = String(body.data.results[0].message_id)
        await server.messageOnce(postroad.key, id, 'delivered')
        const { envelope_sender: sender } = await postroad.json<{ envelope_sender: string }>(
          'message',
          'show',
          id,
        )
        const mail = sink.mails().find(({ envelope }) => envelope.includes(`<${to}>`))
        if (!mail) throw new Error('smtp-sink has no such mail')
        t.match(mail.envelope, `<${sender}>`)

        const parsed = await simpleParser(mail.raw)
        t.equal(parsed.subject, content.subject)
        t.match(parsed.from, { value: [{ name: content.from_name ?? '', address: 'me@sender.test' }] })
        // The footer follows it.
        if (content.html !== undefined)
          t.equal(String(parsed.html).slice(0, content.html.length), content.html)
        if (content.text !== undefined) t.equal(parsed.text?.trimEnd(), content.text.trimEnd())

        const changed = Buffer.from(
          mail.raw.toString('latin1').replace(/^Subject: /m, 'Subject: Re: '),
          'latin1',
        )
        for (const [verifier, verify] of Object.entries(verifiers)) {
          t.equal(await verify(mail.raw), true, verifier)
          t.equal(await verify(changed), false, `${verifier} sees a changed subject`)
        }
      })
  },
)
