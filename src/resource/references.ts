/**
 * References between resources: prevents deleting what is in use, and propagates renames.
 *
 * A resource that stores references declares a `ReferenceHolder`, and the composition root combines them. A list, which knows nothing
 * about campaigns, can thus refuse to be deleted while one needs it. Runs in the caller's transaction.
 * Fails: AppError conflict, naming the users.
 */
import { AppError } from '../core/errors.js'
import Type from 'typebox'
import type { Queries } from '../db/database.js'

/** An object that others refer to by id or by name. */
export interface Referenced {
  readonly kind: 'list' | 'tag' | 'segment' | 'template' | 'automation' | 'campaign'
  readonly workspaceId: string
  readonly id: string
  readonly name: string
}

/** An object that refers to it. */
export interface Use {
  /** Noun for messages, e.g. `scheduled campaign`. */
  readonly what: string
  readonly id: string
  readonly name: string
}

export interface ReferenceHolder {
  /** Finds objects that would stop working without it. */
  findUses(db: Queries, thing: Referenced): Promise<readonly Use[]>
  /** Replaces the old name wherever it is stored. */
  rename?(db: Queries, thing: Referenced, name: string): Promise<void>
}

export interface ReferenceParts {
  readonly references: References
}

/** Query of a delete route for something others may use. */
export const forceQuery = Type.Object(
  {
    force: Type.Optional(Type.Boolean({ description: 'Delete it even if it is in use. Default false.' })),
  },
  { additionalProperties: false },
)

/** Describes such a route. @param users ends with a comma if it is a list */
export function describeUses(thing: string, users: string): string {
  return `Returns 409 naming the users if ${users} uses the ${thing}; \`force=true\` deletes it anyway.`
}

/** Users named in an error; the rest are only counted. */
const MAX_NAMED = 5

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
      .slice(0, MAX_NAMED)
      .map(({ what, name, id }) => `${what} ${JSON.stringify(name)} (${id})`)
    const more = others.length > MAX_NAMED ? ` and ${others.length - MAX_NAMED} more` : ''
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
