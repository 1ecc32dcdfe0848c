/** docs/webhooks.md: its payloads are those that are sent, and each of its recipes tells right from wrong. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Compile } from 'typebox/compile'
import { bodySchema } from '../../src/webhooks/events/event-schemas.js'
import { WEBHOOK_EVENT_NAMES } from '../../src/webhooks/events/webhook-event.js'
import { SIGNATURE_CHECKS } from '../../src/http/openapi/webhook-guide.js'
import { isThere, recipeIn, RECIPES, tryRecipe } from './recipes.js'
import { PAGE, withEvents } from './webhook-page.js'

const page = readFileSync(PAGE, 'utf8')

t.test('the page shows each event with the body that is sent', async t => {
  t.equal(withEvents(page), page, 'node build/test/webhooks/write-webhook-page.js')
  const bodies = [...page.matchAll(/^```json\n(.*?)\n```$/gms)].map(([, text]) => JSON.parse(text ?? ''))
  t.same(
    bodies.map(({ event }) => event),
    WEBHOOK_EVENT_NAMES,
  )
  for (const body of bodies) t.ok(Compile(bodySchema(body.event)).Check(body), body.event)
})

t.test('the API reference shows the same recipes', async t => {
  for (const { language } of RECIPES)
    t.equal(
      SIGNATURE_CHECKS[language === 'js' ? 'node' : (language as keyof typeof SIGNATURE_CHECKS)],
      recipeIn(page, language),
      language,
    )
})

for (const recipe of RECIPES)
  t.test(
    `the recipe in ${recipe.language} takes what is right and refuses everything else`,
    { skip: isThere(recipe) ? false : `${recipe.version[0] ?? ''} is not installed` },
    t => tryRecipe(t, page, recipe),
  )
