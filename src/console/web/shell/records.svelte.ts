/** What the palette finds among the records of the workspace that is shown. A fault leaves out what it concerns. */
import { answer, rest } from '../api/client'
import { AudienceNames, audienceScope } from '../state/audience.svelte'
import { foundAmong, MIN_TYPED, type FoundRecord } from './commands'

/** Typing has ended. */
const PAUSE_MS = 150
/** Campaigns are looked for among the newest; the API does not search their names. */
const MOST_CAMPAIGNS = 200
const MOST_CONTACTS = 5

export class PaletteRecords {
  found = $state.raw<readonly FoundRecord[]>([])
  private readonly names = new AudienceNames()
  private campaigns: readonly FoundRecord[] = []
  private knownScope: string | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private run = 0

  /** When the palette is opened: names may have changed since. */
  forget(): void {
    this.knownScope = undefined
    this.found = []
  }

  look(typed: string): void {
    clearTimeout(this.timer)
    const run = ++this.run
    if (typed.length < MIN_TYPED) this.found = []
    else this.timer = setTimeout(() => void this.find(typed, run), PAUSE_MS)
  }

  private async find(typed: string, run: number): Promise<void> {
    const [templates, contacts] = await Promise.all([
      templatesNamed(typed),
      contactsNamed(typed),
      this.loadNames(),
    ])
    if (run !== this.run) return
    const { lists, segments } = this.names
    this.found = [
      ...foundAmong(this.campaigns, typed),
      ...templates,
      ...foundAmong(
        lists.map(({ id, name }) => ({ kind: 'lists' as const, id, text: name })),
        typed,
      ),
      ...foundAmong(
        segments.map(({ id, name }) => ({ kind: 'segments' as const, id, text: name })),
        typed,
      ),
      ...contacts,
    ]
  }

  private async loadNames(): Promise<void> {
    const scope = audienceScope()
    if (scope === this.knownScope) return
    this.knownScope = scope
    const query = { limit: MOST_CAMPAIGNS, count: false as const }
    const [campaigns] = await Promise.allSettled([
      answer(rest.GET('/campaigns', { params: { query } })),
      this.names.load(),
    ])
    this.campaigns =
      campaigns.status === 'fulfilled'
        ? campaigns.value.data.map(({ id, name }) => ({ kind: 'campaigns', id, text: name }))
        : []
  }
}

async function templatesNamed(typed: string): Promise<FoundRecord[]> {
  try {
    const query = { search: typed, limit: MOST_CONTACTS }
    const { data } = await answer(rest.GET('/templates', { params: { query } }))
    return data.map(({ id, name }) => ({ kind: 'templates', id, text: name }))
  } catch {
    return []
  }
}

async function contactsNamed(typed: string): Promise<FoundRecord[]> {
  try {
    const query = { search: typed, limit: MOST_CONTACTS, count: false as const }
    const { data } = await answer(rest.GET('/contacts', { params: { query } }))
    return data.map(({ id, email }) => ({ kind: 'contacts', id, text: email }))
  } catch {
    return []
  }
}
