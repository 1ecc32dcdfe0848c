/**
 * References between resources: what uses a thing, and how its new name reaches them.
 *
 * A resource that stores references declares a `ReferenceHolder`; the composition root puts them together. So a list, which knows
 * no campaigns, can refuse to be deleted while one needs it. Everything happens in the transaction of the caller.
 * Fails: AppError conflict, naming what uses the thing.
 */
import { AppError } from '../core/errors.js'
import Type from 'typebox'
import type { Queries } from '../db/database.js'

/** A thing that others refer to, by its id or by its name. */
export interface Referenced {
  readonly kind: 'list' | 'tag' | 'segment' | 'template' | 'automation' | 'campaign'
  readonly workspaceId: string
  readonly id: string
  readonly name: string
}

/** What refers to it. */
export interface Use {
  /** As a sentence calls it, e.g. `scheduled campaign`. */
  readonly what: string
  readonly id: string
  readonly name: string
}

export interface ReferenceHolder {
  /** Those that stop working without the thing. */
  findUses(db: Queries, thing: Referenced): Promise<readonly Use[]>
  /** Puts the new name wherever the thing is stored by its old one. */
  rename?(db: Queries, thing: Referenced, name: string): Promise<void>
}

export interface ReferenceParts {
  readonly references: References
}

/** Query of a route that deletes something others may use. */
export const forceQuery = Type.Object(
  {
    force: Type.Optional(
      Type.Boolean({ description: 'Delete it even where something uses it. Default false.' }),
    ),
  },
  { additionalProperties: false },
)

/** Description of such a route. @param users with a comma behind where it is an enumeration */
export function describeUses(thing: string, users: string): string {
  return `A ${thing} that ${users} uses is a 409, which names what uses it; \`force=true\` deletes it all the same.`
}

/** Named in an error; all of them are counted. */
const MOST_NAMED = 5

export class References {
  private readonly holders: readonly ReferenceHolder[]

  constructor(holders: readonly ReferenceHolder[]) {
    this.holders = holders
  }

  /** @throws AppError conflict */
  async refuseIfUsed(db: Queries, thing: Referenced): Promise<void> {
    const uses: Use[] = []
    for (const holder of this.holders) uses.push(...(await holder.findUses(db, thing)))
    const others = uses.filter(({ id }) => id !== thing.id)
    if (others.length === 0) return
    const named = others
      .slice(0, MOST_NAMED)
      .map(({ what, name, id }) => `${what} ${JSON.stringify(name)} (${id})`)
    const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : ''
    throw new AppError(
      'conflict',
      `the ${thing.kind} ${JSON.stringify(thing.name)} is used by ${named.join(', ')}${more}; ` +
        'change what uses it first, or delete it anyway with force=true',
    )
  }

  async rename(db: Queries, thing: Referenced, name: string): Promise<void> {
    for (const holder of this.holders) await holder.rename?.(db, thing, name)
  }
}
