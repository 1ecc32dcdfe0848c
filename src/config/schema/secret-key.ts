/**
 * The section `[secrets]` and the notation of its key: 32 bytes in base64, or the absolute path of a file that holds them.
 *
 * Part of the schema, which checks and decodes with it; called by `accounts/secret-sealing.ts` for what the file holds.
 * Pure; text that is not in the notation parses to `undefined`.
 */
import { isAbsolute } from 'node:path'
import { optionalParsed, table } from './fields.js'

export type SecretKeySource = { readonly bytes: Buffer } | { readonly file: string }

const KEY_BYTES = 32

/** What is a key is never taken for a path, though base64 may begin with a slash. */
export function parseSecretKeySource(text: string): SecretKeySource | undefined {
  const bytes = parseSecretKey(text)
  if (bytes) return { bytes }
  return isAbsolute(text) ? { file: text } : undefined
}

/** @returns 32 bytes */
export function parseSecretKey(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === KEY_BYTES && bytes.toString('base64') === text ? bytes : undefined
}

export const SECRETS_SECTION = table(
  {
    key: optionalParsed(parseSecretKeySource, '32 bytes in base64 or the absolute path of a file', {
      default: '',
      example: '/var/lib/postroad/secrets.key',
      secret: 'always',
      description:
        'Seals private keys and secrets in the database, so that backups of it hold none: 32 bytes in base64 (`openssl rand -base64 32`), or the absolute path of a file that holds them. What is there is sealed when `serve` starts; from then on it cannot be done without, so keep it, and keep it apart from the backups.',
    }),
  },
  { description: 'How secrets are kept.' },
)
