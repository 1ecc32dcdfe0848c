/**
 * A mail as people read it: header, text, HTML and what is attached; and its parts as files.
 *
 * Used by `capture show` and `inbound show`. mailparser takes the mail apart; it has no bounds of its own, so that our reader of
 * MIME structure looks first, and it is loaded only here, when a mail is shown. What a stranger wrote must not steer the
 * operator's terminal, or name a file outside of the folder that was asked for.
 * Fails: AppError `validation_error` for a mail beyond the bounds (`--raw` shows it), `conflict` for a file that exists.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../core/errors.js'
import { plainTextOf } from '../../mail/compose/plain-text.js'
import { readMimeStructure, type MimeRules } from '../../mail/mime/mime-structure.js'
import { table } from '../context.js'

export interface MailView {
  readonly from: string
  readonly to: string
  readonly subject: string
  /** As it stands in the header. */
  readonly date: string
  /** Made from the HTML where there is no other. */
  readonly text: string
  readonly html: string | null
  readonly attachments: readonly AttachmentView[]
}

export interface AttachmentView {
  /** As its sender called it; empty where it has none. */
  readonly filename: string
  readonly contentType: string
  readonly octets: Buffer
}

/** Octets of a mail that is taken apart in memory; more than any that is accepted. */
const MAX_OCTETS = 64 * 1024 * 1024
const BOUNDS: MimeRules = {
  isLenient: false,
  maxDepth: 20,
  maxParts: 1_000,
  maxHeaderOctets: 262_144,
  maxFields: 2_000,
  maxFieldsOfAll: 20_000,
  opens: type => type.startsWith('multipart/') || type === 'message/rfc822',
}
/** Characters of HTML that mailparser looks through. */
const MAX_HTML = 2_000_000
/** Characters of a name that a file gets. */
const MAX_NAME = 100

/** @throws AppError validation_error */
export async function viewMail(octets: Buffer): Promise<MailView> {
  refuseLarge(octets)
  const { simpleParser } = await import('mailparser')
  const mail = await simpleParser(octets, {
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    maxHtmlLengthToParse: MAX_HTML,
    // The parts that say why a mail came back are listed like others.
    keepDeliveryStatus: true,
  })
  const html = mail.html === false ? null : mail.html
  return {
    from: mail.from?.text ?? '',
    to: [mail.to ?? []]
      .flat()
      .map(({ text }) => text)
      .join(', '),
    subject: mail.subject ?? '',
    date: mail.headerLines.find(({ key }) => key === 'date')?.line.replace(/^date:\s*/i, '') ?? '',
    text: textOf(mail.text, html),
    html,
    attachments: mail.attachments.map(({ filename = '', contentType, content }) => ({
      filename,
      contentType,
      octets: content,
    })),
  }
}

/** mailparser gives a line end for a mail that has HTML only. */
function textOf(text: string | undefined, html: string | null): string {
  return html !== null && (text ?? '').trim() === '' ? plainTextOf(html) : (text ?? '')
}

function refuseLarge(octets: Buffer): void {
  if (octets.length > MAX_OCTETS)
    throw new AppError(
      'validation_error',
      `the mail is larger than ${MAX_OCTETS / 1024 / 1024} MB; see --raw`,
    )
  try {
    readMimeStructure(octets, BOUNDS)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${error.message}; see --raw`)
  }
}

/** For the terminal. */
export function shownView(view: MailView): string {
  const head = [
    ['From', view.from],
    ['To', view.to],
    ['Subject', view.subject],
    ['Date', view.date],
  ].flatMap(([name = '', value = '']) => (value === '' ? [] : [`${name}: ${value.replace(/\s+/g, ' ')}`]))
  const rows = view.attachments.map((one, index) => [
    index + 1,
    one.filename,
    one.contentType,
    one.octets.length,
  ])
  const attached = rows.length === 0 ? [] : ['', table(['ATTACHED', 'NAME', 'TYPE', 'SIZE'], rows)]
  return printable([...head, '', view.text.trimEnd(), ...attached].join('\n'))
}

export function viewToJson({ text, html, attachments }: MailView) {
  return {
    text,
    html,
    attachments: attachments.map(({ filename, contentType, octets }) => ({
      filename,
      content_type: contentType,
      size: octets.length,
    })),
  }
}

/**
 * Writes `text.txt`, `body.html` and each attachment under a number and its name. Nothing that is there is written over.
 *
 * @returns the files, in order
 * @throws AppError conflict; those before it are written
 */
export async function saveParts(view: MailView, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const files: [name: string, content: string | Buffer][] = [
    ['text.txt', view.text],
    ...(view.html === null ? [] : [['body.html', view.html] as [string, string]]),
    ...view.attachments.map(({ filename, octets }, index): [string, Buffer] => [
      `${String(index + 1).padStart(2, '0')}-${safeName(filename)}`,
      octets,
    ]),
  ]
  const saved: string[] = []
  for (const [name, content] of files) {
    const file = join(folder, name)
    try {
      // Also where there is a link of that name, wherever it leads.
      await writeFile(file, content, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new AppError('conflict', `${file} exists; nothing is written over`)
    }
    saved.push(file)
  }
  return saved
}

/** Letters, digits and a few signs; no path, no hidden file, nothing that a terminal or a shell takes for more than a name. */
export function safeName(name: string): string {
  const clean = name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/^[._-]+/, '')
  // Cut in the middle, so that its ending stays.
  const short = clean.length <= MAX_NAME ? clean : `${clean.slice(0, MAX_NAME - 20)}_${clean.slice(-19)}`
  return Buffer.byteLength(short) <= 200 && short !== '' ? short : 'attachment'
}

/** What a stranger wrote must not steer the operator's terminal. */
export function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what has to go
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '?').replace(/\r(?!\n)/g, '?')
}
