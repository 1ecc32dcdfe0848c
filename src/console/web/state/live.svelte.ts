/**
 * The server's stream of what has changed, and of live figures: open screens read again what they show.
 *
 * One stream per visible window; once it begins, as when a window comes to the front, everything is read again. Without a stream, screens read again every few
 * seconds. A screen does not reload while its user types in it or has a dialog open.
 */
import { untrack } from 'svelte'
import type { components } from '#api/admin'
import { markAll, markChanged, PAUSE_MS, POLL_MS, readDue, type Follower } from './followers'
import { chosenWorkspace, me } from './session.svelte'

export type Figures = components['schemas']['Live']

/** Kinds of records; those of `GET /live/stream`. */
export type Topic =
  | 'activity'
  | 'automations'
  | 'backups'
  | 'bounces'
  | 'campaigns'
  | 'captured'
  | 'certificates'
  | 'contacts'
  | 'domains'
  | 'forms'
  | 'health'
  | 'imports'
  | 'inbound'
  | 'jobs'
  | 'keys'
  | 'lists'
  | 'media'
  | 'messages'
  | 'operators'
  | 'queue'
  | 'saved_blocks'
  | 'segments'
  | 'suppressions'
  | 'tags'
  | 'templates'
  | 'webhooks'
  | 'workspaces'

/** After the server has refused a stream. */
const RETRY_MS = 30_000
/** Between two looks at what is due. */
const LOOK_MS = 500

const state = $state<{ isOpen: boolean; isVisible: boolean; wantsFigures: number }>({
  isOpen: false,
  isVisible: document.visibilityState === 'visible',
  wantsFigures: 0,
})
const latest = $state<{ figures: Figures | undefined }>({ figures: undefined })
const followers = new Set<Follower<Topic>>()

/**
 * Reads again when records of these kinds have changed. Call it while a component is created.
 *
 * @param pauseMs between two reads, at least; longer for what is expensive @param pollMs without a stream, the time between two reads
 */
export function follow(
  topics: readonly Topic[],
  read: () => unknown,
  { pauseMs = PAUSE_MS, pollMs = POLL_MS }: { readonly pauseMs?: number; readonly pollMs?: number } = {},
): void {
  $effect(() => {
    const now = Date.now()
    const follower: Follower<Topic> = { topics, read, pauseMs, pollMs, isDue: false, readAt: now }
    followers.add(follower)
    return () => followers.delete(follower)
  })
}

/** Live figures, while the component exists; undefined until they come, e.g. without a stream. */
export function followFigures(): () => Figures | undefined {
  $effect(() => {
    untrack(() => (state.wantsFigures += 1))
    return () => untrack(() => (state.wantsFigures -= 1))
  })
  return () => latest.figures
}

/** Whether the stream of changes is connected; otherwise screens poll. */
export function isLive(): boolean {
  return state.isOpen
}

/** Keeps the stream open while the frame exists. */
export function keepStream(): void {
  const url = $derived.by(() => {
    if (!me() || !state.isVisible) return undefined
    const query = new URLSearchParams()
    const workspace = chosenWorkspace()
    if (workspace) query.set('workspace_id', workspace.id)
    if (state.wantsFigures > 0) query.set('figures', 'true')
    return `/api/admin/v1/live/stream?${query.toString()}`
  })
  $effect(() => {
    const look = () => (state.isVisible = document.visibilityState === 'visible')
    document.addEventListener('visibilitychange', look)
    const timer = setInterval(readWhatIsDue, LOOK_MS)
    return () => {
      document.removeEventListener('visibilitychange', look)
      clearInterval(timer)
    }
  })
  $effect(() => (url === undefined ? undefined : connect(url)))
}

function connect(url: string): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const lost = (): void => {
    state.isOpen = false
    latest.figures = undefined
  }
  const open = (): void => {
    const opened = (source = new EventSource(url))
    opened.addEventListener('ready', () => {
      state.isOpen = true
      // Changes between a screen's load and now were missed.
      markAll(followers)
    })
    opened.addEventListener('live', ({ data }: MessageEvent<string>) => {
      const { changed, figures } = JSON.parse(data) as { changed: Topic[]; figures?: Figures }
      if (figures) latest.figures = figures
      markChanged(followers, changed)
      readWhatIsDue()
    })
    opened.addEventListener('error', () => {
      lost()
      // Otherwise the browser connects again.
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY_MS)
    })
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
    lost()
  }
}

function readWhatIsDue(): void {
  if (state.isVisible && !isBusy()) readDue(followers, Date.now(), state.isOpen)
}

/** Whether the user types in the screen or has a dialog open. Search fields do not count. */
function isBusy(): boolean {
  if (document.querySelector('dialog[open]')) return true
  const active = document.activeElement
  if (!active?.closest('main')) return false
  return active.matches(
    'textarea, select, [contenteditable="true"], input:not([type="search"], [type="checkbox"], [type="radio"])',
  )
}
