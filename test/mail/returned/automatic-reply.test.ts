/** Automatic replies are not bounces: vacations, challenges and receipts, in many languages. */
import t from 'tap'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import { multipart, ORIGINAL, RETURN_PATH, wire } from '../../support/returned/returned-mail.js'

function answer(fields: string, text = 'I am away until Monday.'): Buffer {
  return wire(`From: Ann <ann@example.net>\nTo: <${RETURN_PATH}>\n${fields}\n\n${text}\n`)
}

function kindOf(source: Buffer): string {
  const { kind, form } = readReturnedMail(source)
  return `${kind} ${form}`
}

t.test('a vacation notice names who is away and which message it answers', async t => {
  const fields = 'Subject: Away\nAuto-Submitted: auto-replied\nIn-Reply-To: <m1.abc@sender.example>'
  t.match(readReturnedMail(answer(fields)), {
    kind: 'auto_reply',
    form: 'vacation',
    recipients: [{ recipient: 'ann@example.net' }],
    original: { messageId: 'm1.abc@sender.example' },
  })
})

t.test('fields that only programs write mark automatic replies', async t => {
  const fields = [
    'Auto-Submitted: auto-replied',
    'Auto-Submitted: Auto-Replied (vacation)',
    'X-Autoreply: yes',
    'X-Autorespond: vacation',
    'X-Autoresponder: 1',
    'X-Auto-Reply-From: ann@example.net',
    'Precedence: auto_reply',
    'X-Precedence: auto-reply',
    'Delivered-To: autoresponder',
    'X-MS-Exchange-Inbox-Rules-Loop: ann@example.net',
  ]
  for (const field of fields)
    t.equal(kindOf(answer(`Subject: Hello\n${field}`)), 'auto_reply vacation', field)
})

t.test('subjects are recognized in the languages of the programs', async t => {
  const subjects = [
    'Automatic reply: Your receipt',
    'Auto: Your receipt',
    'Out of Office: Your receipt',
    'Out of the office until 3 May',
    'Autoreply: Hello',
    'Automatische Antwort: Ihre Rechnung',
    'Abwesenheitsnotiz: Ihre Rechnung',
    'Réponse automatique : Votre facture',
    "Message d'absence",
    'Respuesta automática: Su factura',
    'Resposta automática: Sua fatura',
    'Risposta automatica: La fattura',
    'Automatisch antwoord: Uw factuur',
    'Autosvar: Faktura',
    'Automaattinen vastaus: Lasku',
    'Automatyczna odpowiedź: Faktura',
    'Automatická odpověď: Faktura',
    'Automatikus válasz: Számla',
    'Автоматический ответ: Счёт',
    'Αυτόματη απάντηση: Τιμολόγιο',
    'Otomatik yanıt: Fatura',
    '自動応答: 領収書',
    '自动答复: 收据',
    '자동 회신: 영수증',
    'מענה אוטומטי: קבלה',
    'رد تلقائي: إيصال',
  ]
  for (const subject of subjects) {
    const encoded = `=?utf-8?B?${Buffer.from(subject).toString('base64')}?=`
    t.equal(kindOf(answer(`Subject: ${encoded}`)), 'auto_reply vacation', subject)
  }
})

t.test('an empty return path does not turn a vacation notice into a bounce', async t => {
  const fields =
    'Return-Path: <>\nSubject: Automatic reply: Delivery of your order\nX-Auto-Response-Suppress: All'
  t.equal(
    kindOf(answer(fields, 'I am away. Mail to bob@example.org could not be delivered either.')),
    'auto_reply vacation',
  )
})

t.test('challenges are recognized', async t => {
  t.equal(kindOf(answer('Subject: Please confirm your message to Ann')), 'auto_reply challenge')
  t.equal(kindOf(answer('Subject: Sender verification')), 'auto_reply challenge')
  const text =
    'Your message to ann@example.net is being held. To release it, click the link and confirm it was sent by you.'
  t.equal(kindOf(answer('Subject: Re: Your receipt', text)), 'auto_reply challenge')
})

t.test('receipts are recognized', async t => {
  const receipt = multipart('multipart/report; report-type=disposition-notification', [
    'Content-Type: text/plain\n\nYour message was read.',
    'Content-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; ann@example.net\nOriginal-Message-ID: <m1.abc@sender.example>\nDisposition: manual-action/MDN-sent-manually; displayed\n',
    `Content-Type: text/rfc822-headers\n\n${ORIGINAL}`,
  ])
  t.match(readReturnedMail(receipt), {
    kind: 'auto_reply',
    form: 'receipt',
    original: { messageId: 'm1.abc@sender.example' },
  })
  t.equal(kindOf(answer('Subject: Read: Your receipt', 'Your message was read.')), 'auto_reply receipt')
})

t.test('bounces labelled automatic are bounces', async t => {
  const source = wire(`Return-Path: <>
From: Mail Delivery System <Mailer-Daemon@relay.example>
To: <${RETURN_PATH}>
Subject: Mail delivery failed: returning message to sender
Auto-Submitted: auto-replied

This message was created automatically by mail delivery software.
The following address(es) failed:

  ann@example.net
    550 5.1.1 no such user
`)
  t.match(readReturnedMail(source), { kind: 'bounce', recipients: [{ recipient: 'ann@example.net' }] })
})

t.test('personal mail is neither', async t => {
  const subjects = [
    'Re: Your receipt',
    'I was out of office when this arrived',
    'Read this: offer',
    'About your auto reply',
  ]
  for (const subject of subjects)
    t.equal(kindOf(answer(`Subject: ${subject}`, 'Thanks, Ann')), 'other none', subject)
  t.equal(kindOf(answer('Subject: Hello\nAuto-Submitted: no', 'Thanks, Ann')), 'other none')
})
