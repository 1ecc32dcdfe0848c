/** Names of what flows refer to, to choose from and to show. A fault leaves them empty: what shows them works without. */
import { untrack } from 'svelte'
import { answer, rest } from '../../../api/client'
import { AudienceNames } from '../../../state/audience.svelte'

export interface Named {
  readonly id: string
  readonly name: string
}

const MOST = 500

export class FlowNames {
  readonly audience = new AudienceNames()
  templates = $state.raw<readonly Named[]>([])
  automations = $state.raw<readonly Named[]>([])
  campaigns = $state.raw<readonly Named[]>([])
  forms = $state.raw<readonly Named[]>([])
  isKnown = $state(false)

  load(): Promise<void> {
    return untrack(async () => {
      const query = { limit: MOST }
      const names = async (request: Promise<{ readonly data: readonly Named[] }>) =>
        (await request.catch(() => ({ data: [] }))).data.toSorted((a, b) => a.name.localeCompare(b.name))
      await this.audience.load()
      // One after the other: each is a slow read on the server, and what is drawn is there without them.
      const templates = await names(answer(rest.GET('/templates', { params: { query } })))
      const automations = await names(answer(rest.GET('/automations', { params: { query } })))
      const campaigns = await names(answer(rest.GET('/campaigns', { params: { query } })))
      const forms = await names(answer(rest.GET('/forms', { params: { query } })))
      this.templates = templates
      this.automations = automations
      this.campaigns = campaigns
      this.forms = forms
      this.isKnown = true
    })
  }
}
