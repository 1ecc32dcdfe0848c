/**
 * Secrets in the config of webhook steps: stored and sent, masked where steps are shown.
 *
 * | what                                                | a key that may write automations | one that may only read them |
 * |-----------------------------------------------------|----------------------------------|-----------------------------|
 * | headers for credentials, by their name              | masked                           | masked                      |
 * | all other headers                                   | shown                            | masked                      |
 * | the URL behind its host, which is often the secret  | shown                            | masked                      |
 * | fields of the body that are named like credentials  | shown                            | masked                      |
 *
 * Called where steps are shown (`flows/flow-schema.ts`) and changed (`flows/edit-steps.ts`): a mask that is sent back keeps the stored value.
 * Pure. Fails: AppError validation_error for a mask that stands for no stored value.
 */
import { refusal } from '../../audience/checks.js'

type Config = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

/** Stands for a value that is not shown. */
export const HIDDEN = '********'

/** By name: what HTTP itself has for credentials (RFC 9110 §11, RFC 6265), and what services call theirs. */
const IS_SECRET =
  /^(proxy-)?authorization$|^cookie$|(^|[-_])(token|secret|password|credentials?|signature|(api|access|auth)?[-_]?key|auth)([-_]|$)/i

/** @param mayWrite whether who is shown it may change automations @returns the config as it may be shown */
export function withoutSecrets(config: Config, mayWrite: boolean): Config {
  const { headers, url, body } = config
  if (!isObject(headers)) return config
  const shown = Object.entries(headers as Headers).map(([name, value]) => [
    name,
    mayWrite && !IS_SECRET.test(name) ? value : HIDDEN,
  ])
  const masked = { ...config, headers: Object.fromEntries(shown) as Headers }
  if (mayWrite) return masked
  return {
    ...masked,
    ...(typeof url === 'string' ? { url: maskedUrl(url) } : {}),
    ...(isObject(body) ? { body: maskedFields(body) } : {}),
  }
}

/**
 * @param before as it is stored; absent where there was none
 * @param path of the config
 * @returns what was said, with the stored values in place of what stands for them
 */
export function withKeptSecrets(said: Config, before: Config | undefined, path: string): Config {
  const { headers, url, body } = said
  return {
    ...said,
    ...(isObject(headers) ? { headers: keptHeaders(headers, before?.['headers'], path) } : {}),
    ...(typeof url === 'string' ? { url: keptUrl(url, before?.['url'], path) } : {}),
    ...(isObject(body) && isObject(before?.['body']) ? { body: keptFields(body, before['body']) } : {}),
  }
}

function keptHeaders(headers: Config, before: unknown, path: string): Config {
  const stored = isObject(before) ? Object.entries(before) : []
  const byName = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]))
  const kept = Object.entries(headers).map(([name, value]) => {
    if (value !== HIDDEN) return [name, value]
    const known = byName.get(name.toLowerCase())
    if (known === undefined) throw standsForNothing(`${path}.headers.${name}`)
    return [name, known]
  })
  return Object.fromEntries(kept) as Config
}

function keptUrl(url: string, before: unknown, path: string): string {
  if (!url.includes(HIDDEN)) return url
  if (typeof before === 'string' && maskedUrl(before) === url) return before
  throw standsForNothing(`${path}.url`)
}

function maskedUrl(url: string): string {
  const [host = '', rest = ''] = /^([a-z]+:\/\/[^/?#\\]*)(.*)$/is.exec(url)?.slice(1) ?? ['', url]
  return rest === '' || rest === '/' ? url : `${host}/${HIDDEN}`
}

function maskedFields(body: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      IS_SECRET.test(name) ? HIDDEN : isObject(value) ? maskedFields(value) : value,
    ]),
  )
}

function keptFields(body: Config, before: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const stored = Object.hasOwn(before, name) ? before[name] : undefined
      if (value === HIDDEN && IS_SECRET.test(name) && stored !== undefined) return [name, stored]
      return [name, isObject(value) && isObject(stored) ? keptFields(value, stored) : value]
    }),
  )
}

function standsForNothing(path: string) {
  return refusal(path, `${HIDDEN} keeps a stored secret, but none is stored here; send the value itself`)
}

function isObject(value: unknown): value is Config {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
