/** The preferences as HTML, by what may be chosen. Called by `preferences-pages.ts`. Pure. */
import { html, type Html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer } from '../../http/public/public-route.js'
import { doneNote, type Follower } from './subscriber.js'

export interface Choices {
  readonly state: 'subscribed' | 'unsubscribed' | 'stopped'
  /** Public ones; of whoever is subscribed. */
  readonly lists: readonly {
    readonly id: string
    readonly name: string
    readonly description: string | null
    readonly isIn: boolean
  }[]
}

/** What was done, of which the page then tells. */
export type Done = 'saved' | 'unsubscribed' | 'subscribed'

export function preferencesAnswer(
  { subscriber, sender }: Follower,
  choices: Choices,
  texts: PageTexts,
  done?: Done,
): PublicAnswer {
  const said = texts.preferences
  const { recipient: email } = subscriber
  const name = sender.name
  const content = {
    subscribed: () =>
      html`<p>${said.about(email, name)}</p>
        ${done === 'saved' && doneNote(said.saved)}
        ${done === 'subscribed' && doneNote(said.subscribedAgain(email, name))} ${listForm(choices, texts)}
        <h2>${said.allTitle}</h2>
        <p>${said.allText(name)}</p>
        ${button('unsubscribe', said.unsubscribeAll, 'second')}`,
    unsubscribed: () =>
      html`<p role="status">${said.unsubscribed(email, name)}</p>
        ${button('subscribe', said.subscribeAgain)}`,
    stopped: () => html`<p role="status">${said.stopped(email, name)}</p>`,
  }
  return { page: { title: said.title, content: content[choices.state](), sender } }
}

function listForm({ lists }: Choices, { preferences }: PageTexts): Html {
  if (lists.length === 0) return html`<p class="soft">${preferences.noLists}</p>`
  return html`<form method="post">
    <fieldset>
      <legend>${preferences.lists}</legend>
      ${lists.map(
        ({ id, name, description, isIn }) =>
          html`<input type="hidden" name="shown" value="${id}" /><label class="check"
              ><input type="checkbox" name="list" value="${id}" ${isIn && html` checked`} /><span
                >${name}${description !== null && html`<span>${description}</span>`}</span
              ></label
            >`,
      )}
    </fieldset>
    <button name="do" value="save">${preferences.save}</button>
  </form>`
}

function button(value: string, text: string, kind?: 'second'): Html {
  return html`<form method="post">
    <button name="do" value="${value}" class="${kind ?? 'first'}">${text}</button>
  </form>`
}
