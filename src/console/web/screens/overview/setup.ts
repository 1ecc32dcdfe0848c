/** What the setup checklist shows, and where its steps lead. Pure. */
import type { components } from '#api/admin'

export type Setup = components['schemas']['Setup']
export type Step = Setup['steps'][number]

/** An examination by the doctor takes at most ten seconds. */
const CHECK_POLL_MS = 2_000

/** Until it is dismissed, or there is nothing left to do. */
export function isShown({
  dismissed_at: dismissedAt,
  steps,
}: Pick<Setup, 'dismissed_at' | 'steps'>): boolean {
  return dismissedAt === null && steps.some(({ done }) => !done)
}

/** The step that is open: the first that is to be done. */
export function nextStep(steps: readonly Step[]): Step['name'] | undefined {
  return steps.find(({ done }) => !done)?.name
}

/** How long to wait before asking again how far the checks of `delivery` are; undefined: nothing runs. */
export function checkPoll(steps: readonly Step[]): number | undefined {
  const delivery = steps.find(({ name }) => name === 'delivery')
  return delivery && !delivery.done && delivery.problems.length === 0 ? CHECK_POLL_MS : undefined
}

export function placeOf({ name, done, record_id: id }: Step, workspaceId: string): string {
  const record = (path: string) => (id === null ? path : `${path}/${id}`)
  switch (name) {
    case 'company':
      return `/workspaces/${workspaceId}`
    case 'sender':
      return record('/domains')
    case 'delivery':
      return '/health'
    case 'mail':
      return done ? record('/messages') : '/keys'
    case 'contacts':
      return done ? '/contacts' : '/contacts/import'
    case 'campaign':
      return record('/campaigns')
  }
}
