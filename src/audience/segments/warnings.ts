/**
 * Warnings about valid conditions that look like mistakes: an attribute no contact has, or whose values a rule cannot compare, a list or tag
 * deleted since.
 *
 * For requests that create, update or estimate. Reads the newest contacts that have the attribute; a scan that takes too long yields no
 * warning.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { findDeclaredTypes } from '../attributes/attribute-store.js'
import type { AudienceParts } from '../audience-parts.js'
import { attributeAt } from '../contacts/compared-attributes.js'
import { patience } from '../scan-store.js'
import { sampleWith } from './audience-query-store.js'
import type { Conditions, Rule } from './conditions.js'
import { attributeOf, readRule } from './read-conditions.js'
import { checkConditions, rulesOf } from './rule-references.js'
import { typeWarning } from './suitable-types.js'

/** Attributes checked per request: one that no contact has costs a scan of the whole audience. */
const MAX_NAMES = 20
/** Contacts whose values tell an attribute's type. */
const SAMPLE_SIZE = 100

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
      'Set when creating, updating or estimating: rules that look like mistakes, such as an attribute that no contact has, or that compare ' +
      'numbers or dates with an attribute whose declared type, or most of whose values, are something else.',
  }),
)

export type Warning = Static<typeof WarningSchema>

/** @param path of the conditions in the request */
export async function warningsOf(
  { database, clock }: Pick<AudienceParts, 'database' | 'clock'>,
  workspaceId: string,
  conditions: Conditions,
  path = 'conditions',
): Promise<Warning[]> {
  const warnings: Warning[] = []
  const warn = (error: unknown) => {
    if (!(error instanceof AppError)) throw error
    // The scan timed out: no warning.
    if (error.code !== 'unavailable') warnings.push({ path: error.path ?? path, message: error.message })
  }
  await checkConditions(database.reader, workspaceId, conditions, { path }).catch(warn)
  const checkTimeout = patience(clock)
  const byAttribute = new Map<string, { readonly rule: Rule; readonly place: string }[]>()
  for (const found of rulesOf(conditions, path)) {
    const attribute = attributeOf(found.rule.field)
    if (attribute !== undefined) byAttribute.set(attribute, [...(byAttribute.get(attribute) ?? []), found])
  }
  if (byAttribute.size === 0) return warnings
  const declared = await findDeclaredTypes(database.reader, workspaceId)
  for (const [attribute, rules] of [...byAttribute].slice(0, MAX_NAMES))
    try {
      const asking = { workspaceId, now: clock.now() }
      const sample = await sampleWith(database.slowReader, attribute, asking, SAMPLE_SIZE, checkTimeout)
      const values = sample.map(contact => attributeAt(contact.attributes, attribute))
      const [first] = rules
      if (sample.length === 0 && first)
        warnings.push({
          path: `${first.place}.field`,
          message: `no contact has an attribute ${JSON.stringify(attribute)}`,
        })
      for (const { rule, place } of rules) {
        const message = typeWarning(attribute, rule, readRule(rule, place), declared.get(attribute), values)
        if (message !== undefined) warnings.push({ path: `${place}.operator`, message })
      }
    } catch (error) {
      warn(error)
    }
  return warnings
}
