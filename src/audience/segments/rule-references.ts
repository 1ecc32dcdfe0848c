/**
 * References from rules to lists and tags, by id or name (ignoring case), and to campaigns, by id.
 *
 * When conditions are stored, everything they reference must exist, and a dynamic list must not include itself. A rename updates stored
 * conditions in the same transaction. Fails: AppError validation_error with the rule's path.
 */
import { fold } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import type { Referenced } from '../../resource/references.js'
import { refusal } from '../checks.js'
import { findNamedLists } from '../lists/list-store.js'
import type { NamedSeq } from '../pair-store.js'
import { findNamedTags } from '../tags/tag-store.js'
import { isGroup, type Conditions, type Rule, type RuleValue, type Scalar } from './conditions.js'
import { CAMPAIGN_FIELDS, readConditions, type Group } from './read-conditions.js'
import { historyOf } from './rule-history.js'

/** Nesting of dynamic lists that reference dynamic lists. */
const MAX_DEPTH = 5
/** Includes the rules of all referenced lists. */
const MAX_RULES = 200

export interface PlacedRule {
  readonly rule: Rule
  readonly place: string
}

/** All rules, including nested ones, with their paths. */
export function rulesOf(conditions: Conditions, path: string): PlacedRule[] {
  return conditions.rules.flatMap((rule, at) => {
    const place = `${path}.rules.${at}`
    return isGroup(rule) ? rulesOf(rule, place) : [{ rule, place }]
  })
}

function valuesOf(rule: Rule): readonly Scalar[] {
  const { value } = rule
  if (value === undefined || /^is_/.test(rule.operator)) return []
  return typeof value === 'object' ? value : [value]
}

function isNamed({ id, folded }: Pick<NamedSeq, 'id' | 'folded'>, value: Scalar): boolean {
  const written = fold(String(value))
  return written === id || written === folded
}

/**
 * Checks that everything the conditions reference exists.
 *
 * @param listId the dynamic list they belong to, if any @throws AppError validation_error
 */
export async function checkConditions(
  db: Queries,
  workspaceId: string,
  conditions: Conditions,
  { path = 'conditions', listId }: { readonly path?: string; readonly listId?: string } = {},
): Promise<Group> {
  const group = readConditions(conditions, path)
  const rules = rulesOf(conditions, path)
  const about = (field: string) => rules.filter(({ rule }) => rule.field === field)
  const lists = about('lists')
  const tags = about('tags')
  if (tags.length > 0) requireAll(tags, await findNamedTags(db, workspaceId), 'tag')
  if (lists.length > 0) {
    const known = await findNamedLists(db, workspaceId)
    requireAll(lists, known, 'list')
    new ListGraph(known, listId).check(conditions, path)
  }
  await requireCampaigns(
    db,
    workspaceId,
    rules.filter(({ rule }) => CAMPAIGN_FIELDS.includes(rule.field)),
  )
  return group
}

async function requireCampaigns(
  db: Queries,
  workspaceId: string,
  rules: readonly PlacedRule[],
): Promise<void> {
  const ids = rules.flatMap(({ rule }) => valuesOf(rule).map(value => String(value).toLowerCase()))
  if (ids.length === 0) return
  const known = new Set<string>()
  for (const list of inLists([...new Set(ids)]))
    for (const id of await historyOf('campaigns').findKnown(db, workspaceId, list)) known.add(id)
  for (const { rule, place } of rules)
    for (const [at, value] of valuesOf(rule).entries())
      if (!known.has(String(value).toLowerCase())) {
        const where = typeof rule.value === 'object' ? `${place}.value.${at}` : `${place}.value`
        throw refusal(where, `no campaign has the id ${JSON.stringify(value)}`)
      }
}

function requireAll(rules: readonly PlacedRule[], known: readonly NamedSeq[], thing: string): void {
  const names = new Set(known.flatMap(({ id, folded }) => [id, folded]))
  for (const { rule, place } of rules)
    for (const [at, value] of valuesOf(rule).entries())
      if (!names.has(fold(String(value)))) {
        const where = typeof rule.value === 'object' ? `${place}.value.${at}` : `${place}.value`
        throw refusal(where, `unknown ${thing} ${JSON.stringify(value)}; create it, or use another`)
      }
}

/** Dynamic lists and the lists they reference. */
class ListGraph {
  private readonly known: readonly NamedSeq[]
  private readonly own: string | undefined
  private rules = 0

  constructor(known: readonly NamedSeq[], own: string | undefined) {
    this.known = known
    this.own = own
  }

  /** @throws AppError validation_error for a cycle or excessive size */
  check(conditions: Conditions, path: string): void {
    for (const placed of rulesOf(conditions, path)) this.follow(placed.rule, placed.place, [])
  }

  private follow(rule: Rule, place: string, trail: readonly string[]): void {
    this.rules += 1
    if (this.rules > MAX_RULES)
      throw refusal(
        place,
        `conditions can have at most ${MAX_RULES} rules, including those of the lists they reference`,
      )
    if (rule.field !== 'lists') return
    for (const value of valuesOf(rule))
      for (const list of this.known) {
        if (list.conditions === undefined || !isNamed(list, value)) continue
        if (list.id === this.own || trail.includes(list.id))
          throw refusal(`${place}.value`, `the list ${JSON.stringify(value)} would include itself`)
        if (trail.length >= MAX_DEPTH)
          throw refusal(`${place}.value`, `dynamic lists can be nested at most ${MAX_DEPTH} deep`)
        for (const inner of rulesOf(list.conditions, '')) this.follow(inner.rule, place, [...trail, list.id])
      }
  }
}

function isAbout(rule: Rule, { kind }: Referenced): boolean {
  if (kind === 'campaign') return CAMPAIGN_FIELDS.includes(rule.field)
  return rule.field === `${kind}s`
}

export function namesInRules(conditions: Conditions, thing: Referenced): boolean {
  return rulesOf(conditions, '').some(({ rule }) => namesInRule(rule, thing))
}

export function namesInRule(rule: Rule, thing: Referenced): boolean {
  const named = { id: thing.id, folded: fold(thing.name) }
  return isAbout(rule, thing) && valuesOf(rule).some(value => isNamed(named, value))
}

/** @returns undefined if the conditions do not reference it */
export function renamedInRules(
  conditions: Conditions,
  thing: Referenced,
  name: string,
): Conditions | undefined {
  if (!namesInRules(conditions, thing)) return undefined
  return {
    ...conditions,
    rules: conditions.rules.map(one =>
      isGroup(one) ? (renamedInRules(one, thing, name) ?? one) : renamedInRule(one, thing, name),
    ),
  }
}

export function renamedInRule(rule: Rule, thing: Referenced, name: string): Rule {
  if (!namesInRule(rule, thing) || rule.value === undefined) return rule
  const before = fold(thing.name)
  const renamed = (value: Scalar) => (fold(String(value)) === before ? name : value)
  const value: RuleValue = typeof rule.value === 'object' ? rule.value.map(renamed) : renamed(rule.value)
  return { ...rule, value }
}
