/**
 * A mail as people read it: header, text, HTML and attachments; and its parts as files.
 *
 * Used by `capture show` and `inbound show`. mailparser has no limits, so our MIME reader checks the structure first; mailparser is only
 * loaded when a mail is shown. Mail content is untrusted: it must not send control sequences to the terminal or write files outside of the
 * given folder.
 * Throws AppError `validation_error` if the mail exceeds the limits (`--raw` still shows it), `conflict` if a file exists.
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
  /** As in the header. */
  readonly date: string
  /** Derived from the HTML if the mail has no text. */
  readonly text: string
  readonly html: string | null
  readonly attachments: readonly AttachmentView[]
}

export interface AttachmentView {
  /** As named by the sender; empty if unnamed. */
  readonly filename: string
  readonly contentType: string
  readonly octets: Buffer
}

/** Maximum size parsed in memory; larger than any accepted mail. */
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
/** Characters of HTML that mailparser converts. */
const MAX_HTML = 2_000_000
/** Maximum length of a file name. */
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
    // Parts of a bounce are listed like attachments.
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

/** mailparser returns a line end for mail with HTML only. */
function textOf(text: string | undefined, html: string | null): string {
  return html !== null && (text ?? '').trim() === '' ? plainTextOf(html) : (text ?? '')
}

function refuseLarge(octets: Buffer): void {
  if (octets.length > MAX_OCTETS)
    throw new AppError(
      'validation_error',
      `the mail is larger than ${MAX_OCTETS / 1024 / 1024} MB; use --raw`,
    )
  try {
    readMimeStructure(octets, BOUNDS)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${error.message}; use --raw`)
  }
}

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
  const attached = rows.length === 0 ? [] : ['', table(['ATTACHMENT', 'NAME', 'TYPE', 'SIZE'], rows)]
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
 * Writes `text.txt`, `body.html` and each attachment under a number and its name. Never overwrites a file.
 *
 * @returns the files, in order
 * @throws AppError conflict; files before it are written
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
      // `wx` also fails on a symbolic link, wherever it points.
      await writeFile(file, content, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new AppError('conflict', `${file} already exists; remove it or use another folder`)
    }
    saved.push(file)
  }
  return saved
}

/** Letters, digits and some punctuation: no path, no hidden file, no character special to terminals or shells. */
export function safeName(name: string): string {
  const clean = name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/^[._-]+/, '')
  // Shortened in the middle to keep the extension.
  const short = clean.length <= MAX_NAME ? clean : `${clean.slice(0, MAX_NAME - 20)}_${clean.slice(-19)}`
  return Buffer.byteLength(short) <= 200 && short !== '' ? short : 'attachment'
}

/** Removes control characters: mail content is untrusted. */
export function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- matches control characters to remove them
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '?').replace(/\r(?!\n)/g, '?')
}
