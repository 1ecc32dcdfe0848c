/** The installations of an older version that are upgraded in tests, and what they answered. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** The commit whose schema is the oldest that is upgraded. */
export const OLD = 'c01656a2'
export const OLD_FOLDER = 'test/upgrade/installations'
export const sqliteFile = join(OLD_FOLDER, `${OLD}.sqlite.gz`)
export const postgresFile = join(OLD_FOLDER, `${OLD}.postgres.sql.gz`)

/** A link of a mail to this server: a click, the picture that counts opens, the page to unsubscribe. */
export interface MailLink {
  /** From the root. */
  readonly path: string
}

export interface OldFacts {
  readonly version: string
  /** When its server was killed, RFC 3339. */
  readonly at: string
  readonly workspaceId: string
  readonly key: string
  readonly operatorToken: string
  /** Half sent: `mailed` of its `recipients` had their mail. */
  readonly campaign: { readonly id: string; readonly recipients: number; readonly mailed: number }
  /** Five runs wait in it for a day. */
  readonly automation: string
  /** Port of the endpoints of its webhooks. */
  readonly hooks: number
  readonly lastMail: { readonly to: string; readonly links: readonly MailLink[] }
  /** Recipient and subject of each mail that was delivered. */
  readonly delivered: readonly string[]
  /** By path below `/api/v1`. */
  readonly answers: Readonly<Record<string, unknown>>
}

export function readFacts(kind: 'sqlite' | 'postgres'): OldFacts {
  const file = join(OLD_FOLDER, `${OLD}.${kind}.json.gz`)
  return JSON.parse(gunzipSync(readFileSync(file)).toString()) as OldFacts
}

/** @param raw a mail, quoted-printable */
export function linksOf(raw: string): MailLink[] {
  const text = raw.replace(/=\r?\n/g, '').replaceAll('=3D', '=')
  const paths = [...text.matchAll(/https:\/\/mx\.postroad\.test(\/[\w/.~%?=&-]+)/g)].map(
    ([, path = '']) => path,
  )
  return [...new Set(paths)].map(path => ({ path }))
}
