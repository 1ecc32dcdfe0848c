/** Every mail of the corpus through the front door: what arrives reads the same, and its signature holds. */
import t from 'tap'
import { dkimVerdicts, dkimZone } from '../../support/dkim.js'
import { mimeCorpus } from '../../support/mime-corpus/corpus.js'
import { readingOf } from '../../support/reading.js'
import { idsOf, openSubmissionTest, type Caught } from '../../support/smtp/submission.js'

/** Where the authors of the corpus are at home. */
const DOMAIN = 'example.com'
/** Sessions. */
const AT_ONCE = 4

t.test('a corpus of mails arrives unchanged and signed', async t => {
  t.ok(mimeCorpus.filter(({ message }) => !message.includes(0)).length >= 60)
  const { postroad, loggedIn, caught } = await openSubmissionTest(t)
  const domain = await postroad.json<Parameters<typeof dkimZone>[0]>(
    ...['domain', 'add', DOMAIN, '--vouch', '--workspace', postroad.workspaceId],
  )
  const zone = dkimZone(domain)
  const clients = await Promise.all(Array.from({ length: AT_ONCE }, () => loggedIn()))
  const arrived = new Map<string, Caught | string>()
  await Promise.all(
    clients.map(async (client, lane) => {
      for (const { name, message } of mimeCorpus.filter((_, index) => index % AT_ONCE === lane)) {
        const reply = await client.submit(message, { mail: 'BODY=8BITMIME', to: 'bob@one.test' })
        arrived.set(name, reply.startsWith('250 ') ? await caught(idsOf(reply)[0] ?? '') : reply)
      }
    }),
  )
  for (const { name, message, kept = [], subject, isMisreadByMailparser } of mimeCorpus)
    await t.test(name, async t => {
      const mail = arrived.get(name)
      if (message.includes(0)) {
        // RFC 6152 §2: 8BITMIME has no NUL; who wants to send one needs BINARYMIME, which is not offered.
        t.match(mail, /^550 5\.6\.0 .*NUL/)
        return
      }
      if (mail === undefined || typeof mail === 'string') {
        t.fail(mail ?? 'nothing came')
        return
      }
      const text = mail.raw.toString('latin1')
      for (const octets of kept) t.ok(text.includes(octets), 'protected content is unchanged')
      const isAscii = !/[^\x00-\x7f]/.test(text) // eslint-disable-line no-control-regex -- ASCII is meant
      const hasLongLines = /[^\r\n]{999}/.test(text)
      if (isAscii && !hasLongLines) t.match(await dkimVerdicts(mail.raw, zone), [/ rsa-sha256 pass$/])
      else t.ok(kept.length > 0, 'only protected mail is sent unchanged and unsigned')
      if (isMisreadByMailparser) return
      t.strictSame(await readingOf(mail.raw), { ...(await readingOf(message)), ...(subject && { subject }) })
    })
})
