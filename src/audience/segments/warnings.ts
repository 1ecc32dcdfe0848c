/**
 * Warnings about valid conditions that look like mistakes: an attribute no contact has, a list or tag deleted since.
 *
 * For requests that create, update or estimate. Scans the audience, newest contacts first, until one has the attribute; a scan that
 * takes too long yields no warning.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import type { AudienceParts } from '../audience-parts.js'
import { patience } from '../scan-store.js'
import { hasContactWith } from './audience-query-store.js'
import type { Conditions } from './conditions.js'
import { attributeOf } from './read-conditions.js'
import { checkConditions, rulesOf } from './rule-references.js'

/** Attributes checked per request: one that no contact has costs a scan of the whole audience. */
const MAX_NAMES = 20

const WarningSchema = Type.Object(
  {
    path: Type.String({ description: 'Path of the rule, e.g. `conditions.rules.0.field`.' }),
    message: Type.String(),
  },
  { title: 'ConditionsWarning' },
)

export const Warnings = Type.Optional(
  Type.Array(WarningSchema, {
    description:
      'Set when creating, updating or estimating: rules that look like mistakes, such as an attribute that no contact has.',
  }),
)

export type Warning = Static<typeof WarningSchema>

export async function warningsOf(
  { database, clock }: Pick<AudienceParts, 'database' | 'clock'>,
  workspaceId: string,
  conditions: Conditions,
): Promise<Warning[]> {
  const warnings: Warning[] = []
  const warn = (error: unknown) => {
    if (!(error instanceof AppError)) throw error
    // The scan timed out: no warning.
    if (error.code !== 'unavailable')
      warnings.push({ path: error.path ?? 'conditions', message: error.message })
  }
  await checkConditions(database.reader, workspaceId, conditions).catch(warn)
  const checkTimeout = patience(clock)
  const paths = new Map<string, string>()
  for (const { rule, place } of rulesOf(conditions, 'conditions')) {
    const attribute = attributeOf(rule.field)
    if (attribute !== undefined && !paths.has(attribute)) paths.set(attribute, `${place}.field`)
  }
  for (const [attribute, path] of [...paths].slice(0, MAX_NAMES))
    try {
      const asking = { workspaceId, now: clock.now() }
      if (!(await hasContactWith(database.slowReader, attribute, asking, checkTimeout)))
        warnings.push({ path, message: `no contact has an attribute ${JSON.stringify(attribute)}` })
    } catch (error) {
      warn(error)
    }
  return warnings
}
