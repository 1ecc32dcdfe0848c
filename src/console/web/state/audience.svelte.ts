/** What the audience screens share: whose contacts they show, what may be changed, and the names to choose from. */
import type { components } from '#api/rest'
import { answer, rest } from '../api/client'
import { untrack } from 'svelte'
import { currentWorkspace, hasRole, isSandbox } from './session.svelte'

export type List = components['schemas']['List']
export type Tag = components['schemas']['Tag']
export type Segment = components['schemas']['Segment']
export type Contact = components['schemas']['Contact']

/** Changes with the workspace and the sandbox. Effects that load data depend on it. */
export function audienceScope(): string {
  return `${currentWorkspace()?.id ?? ''}${isSandbox() ? ' sandbox' : ''}`
}

export function mayChangeAudience(): boolean {
  return hasRole(['owner', 'operator', 'marketer'], currentWorkspace()?.id)
}

/** Of the most that a workspace can have, one page. */
const MAX_NAMES = 1_000

/** Lists, tags and segments to choose from. A fault leaves them empty: what shows them works without. */
export class AudienceNames {
  lists = $state.raw<readonly List[]>([])
  tags = $state.raw<readonly Tag[]>([])
  segments = $state.raw<readonly Segment[]>([])

  load(): Promise<void> {
    return untrack(async () => {
      const query = { limit: MAX_NAMES }
      const [lists, tags, segments] = await Promise.allSettled([
        answer(rest.GET('/lists', { params: { query } })),
        answer(rest.GET('/tags', { params: { query } })),
        answer(rest.GET('/segments', { params: { query } })),
      ])
      this.lists = lists.status === 'fulfilled' ? byName(lists.value.data) : []
      this.tags = tags.status === 'fulfilled' ? byName(tags.value.data) : []
      this.segments = segments.status === 'fulfilled' ? byName(segments.value.data) : []
    })
  }

  /** Lists that contacts can be added to. */
  get staticLists(): readonly List[] {
    return this.lists.filter(({ type }) => type === 'static')
  }
}

function byName<T extends { readonly name: string }>(things: readonly T[]): readonly T[] {
  return things.toSorted((a, b) => a.name.localeCompare(b.name))
}

/** Ids that one request of the bulk routes takes. */
const IDS_AT_ONCE = 5_000

/** Runs a bulk request for all ids, as many at a time as it takes. */
export async function inBulk<T>(
  ids: readonly string[],
  request: (ids: string[]) => Promise<T>,
): Promise<T[]> {
  const answers: T[] = []
  for (let start = 0; start < ids.length; start += IDS_AT_ONCE)
    answers.push(await request(ids.slice(start, start + IDS_AT_ONCE)))
  return answers
}
