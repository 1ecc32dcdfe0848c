/** What a campaign is made of: the templates, and whom it can be sent to. A fault leaves them empty. */
import type { components } from '#api/rest'
import { answer, rest } from '../../api/client'
import { tr } from '../../i18n/i18n'
import { AudienceNames } from '../../state/audience.svelte'

type TemplateHead = components['schemas']['TemplateHead']

const MOST = 200

export class Choices {
  templates = $state.raw<readonly TemplateHead[]>([])
  isKnown = $state(false)
  private readonly names = new AudienceNames()

  async load(): Promise<void> {
    const query = { limit: MOST }
    const [found] = await Promise.allSettled([
      answer(rest.GET('/templates', { params: { query } })),
      this.names.load(),
    ])
    if (found.status === 'fulfilled')
      this.templates = found.value.data.toSorted((one, other) => one.name.localeCompare(other.name))
    this.isKnown = true
  }

  /** Values are `list ID` and `segment ID`. */
  get audiences(): readonly { readonly value: string; readonly text: string }[] {
    const { list, segment } = tr().campaigns.kinds
    return [
      ...this.names.lists.map(({ id, name }) => ({ value: `list ${id}`, text: `${name} (${list})` })),
      ...this.names.segments.map(({ id, name }) => ({
        value: `segment ${id}`,
        text: `${name} (${segment})`,
      })),
    ]
  }
}
