/** Mail for many: each recipient gets only their own values, whatever was computed or encoded ahead, and signatures cover what is sent. */
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { simpleParser } from 'mailparser'
import t from 'tap'
import { planBody, planSubject, renderMail, valuesOf } from '../../src/content/rendering/mail-plan.js'
import { composeForSigning, type ComposedContent } from '../../src/mail/compose/compose.js'
import { assertSignable, splitMessage } from '../../src/mail/dkim/dkim-sign.js'
import { canonicalBody } from '../support/canonical-body.js'
import { openMailLinks, openPersonalizer } from '../../src/mta/render.js'
import type { JobContent } from '../../src/queue/delivery-agent.js'
import { LETTER, makeJob } from '../support/smtp/mta.js'

const CORPUS = fileURLToPath(new URL('../../../test/content/corpus', import.meta.url))
const MAILS = readdirSync(CORPUS, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.html'))
  .sort()
const SECRET = { version: 1, secret: Buffer.alloc(32, 's') }
const mailLinks = openMailLinks({
  secrets: [SECRET],
  publicUrl: 'https://mail.example.com',
  unsubscribeDomain: 'bounce.example.com',
  unsubscribeKey: SECRET,
})
const brand = {
  companyName: 'Vögel & Co',
  companyAddress: 'Hauptstraße 9',
  attribution: true,
  timezone: 'UTC',
}
const merging = { brand, hasFooter: true, tracking: { opens: true, clicks: {} } }
const WORKSPACE = '01900000-0000-7000-8000-00000000000a'
const NAMES = ['Ann', 'Grüße  und\tmehr ', '€ 😀', 'a=b&c', '. ', '']

const { text: _, ...withoutText } = LETTER

/** Prepended, so that each mail has individual text, in conditions and loops as well. */
const OWN = '<p>Dear {{first_name|reader}} {{#if first_name}}({{first_name}}){{else}}nobody{{/if}}</p>'

t.test('each of many recipients gets the octets of their own rendering', async t => {
  let ahead = 0
  for (const name of MAILS) {
    const written = readFileSync(`${CORPUS}/${name}`, 'utf8').replace('{{', '{ {')
    const html = /<body[^>]*>/i.test(written)
      ? written.replace(/<body[^>]*>/i, tag => tag + OWN)
      : OWN + written
    const content: ComposedContent & JobContent = {
      ...withoutText,
      subject: 'For {{first_name}}',
      html,
      merging,
    }
    const fillIn = openPersonalizer(mailLinks)
    for (const [at, firstName] of NAMES.entries()) {
      const contact = { email: 'ann@x.example', firstName, lastName: null, attributes: {} }
      const messageId = `01900000-0000-7000-8000-00000000000${at}`
      const job = {
        ...makeJob({ content, recipient: contact.email }),
        messageId,
        workspaceId: WORKSPACE,
        mergeValues: { contact },
      }
      const filled = fillIn(job, content, merging)
      if (typeof filled.html === 'object') ahead += 1
      const copy = { to: contact.email, date: 0, messageId: `${at}@mail.example.com` }
      const { message, canonicalBody: known } = composeForSigning(filled, copy)
      const again = composeForSigning(openPersonalizer(mailLinks)(job, content, merging), copy)

      const links = mailLinks.of({ messageId, workspaceId: WORKSPACE, recipient: contact.email })
      const tracking = mailLinks.tracked(WORKSPACE, links, merging.tracking)
      const plan = { subject: planSubject(content.subject, merging), body: planBody({ html }, merging) }
      const meant = renderMail(
        plan,
        valuesOf(merging, job.mergeValues, job.recipient, job.acceptedAt, links, tracking),
      )
      const read = await simpleParser(message, { skipTextToHtml: true, skipImageLinks: true })
      const label = `${name} for '${firstName}'`
      t.equal(read.html, inLines(meant.html ?? ''), `${label}: html`)
      t.equal(read.text, inLines(meant.text ?? ''), `${label}: text`)
      t.ok(again.message.equals(message), `${label}: the same octets from a thread that knows nothing yet`)
      t.doesNotThrow(() => assertSignable(message), label)
      t.ok(known?.equals(canonicalBody(splitMessage(message).body)), `${label}: what is signed`)
    }
  }
  t.ok(ahead > MAILS.length, 'most of them were encoded ahead')
})

/** mailparser's line ends. */
function inLines(text: string): string {
  return text.replace(/\r\n?/g, '\n')
}

t.test('a subject that renders empty is an error; an originally empty one is not', async t => {
  const contact = { email: 'ann@x.example', firstName: '', lastName: null, attributes: {} }
  const fill = (subject: string) => {
    const content: ComposedContent & JobContent = { ...withoutText, subject, html: OWN, merging }
    const job = { ...makeJob({ content, recipient: contact.email }), mergeValues: { contact } }
    return openPersonalizer(mailLinks)(job, content, merging).subject
  }
  t.throws(() => fill(' {{first_name}} '), { message: 'the subject is empty after merging' })
  t.equal(fill('{{first_name|reader}}'), 'reader')
  t.equal(fill(''), '')
})
