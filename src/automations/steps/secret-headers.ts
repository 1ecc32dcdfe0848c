/**
 * Headers of webhook steps that let somebody in: written and used, never shown again.
 *
 * Called where steps are shown (`flows/flow-schema.ts`) and changed (`flows/edit-steps.ts`): whoever sends back what was shown changes
 * nothing of it. Pure.
 * Fails: AppError validation_error for a mark that stands for no value.
 */
import { refusal } from '../../audience/checks.js'

type Config = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

/** Stands for a value that is not shown. */
export const HIDDEN = '********'

/** By name: what HTTP itself has for credentials (RFC 9110 §11, RFC 6265), and what services call theirs. */
const IS_SECRET =
  /^(proxy-)?authorization$|^cookie$|(^|[-_])(token|secret|password|credentials?|signature|(api|access|auth)?[-_]?key|auth)([-_]|$)/i

/** @returns the config as it may be shown */
export function withoutSecrets(config: Config): Config {
  const { headers } = config
  if (!isHeaders(headers) || !Object.keys(headers).some(isSecretHeader)) return config
  const shown = Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? HIDDEN : value])
  return { ...config, headers: Object.fromEntries(shown) as Headers }
}

/**
 * @param before as it is stored; absent where there was none
 * @param path of the config
 * @returns what was said, with the stored values in place of what stands for them
 */
export function withKeptSecrets(said: Config, before: Config | undefined, path: string): Config {
  const { headers } = said
  if (!isHeaders(headers) || !Object.values(headers).includes(HIDDEN)) return said
  const stored = isHeaders(before?.['headers']) ? before['headers'] : {}
  const byName = new Map(Object.entries(stored).map(([name, value]) => [name.toLowerCase(), value]))
  const kept = Object.entries(headers).map(([name, value]) => {
    if (value !== HIDDEN || !isSecretHeader(name)) return [name, value]
    const known = byName.get(name.toLowerCase())
    if (known === undefined)
      throw refusal(
        `${path}.headers.${name}`,
        `${HIDDEN} stands for a value that is not shown, and there is none`,
      )
    return [name, known]
  })
  return { ...said, headers: Object.fromEntries(kept) as Headers }
}

function isSecretHeader(name: string): boolean {
  return IS_SECRET.test(name)
}

function isHeaders(value: unknown): value is Headers {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
