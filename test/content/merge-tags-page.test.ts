/** docs/merge-tags.md is correct: each of its examples is run. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { RENDER_BOUNDS, renderTemplate } from '../../src/content/merge/render-template.js'
import { MERGE_BOUNDS } from '../../src/content/merge/parse-template.js'

const page = readFileSync('docs/merge-tags.md', 'utf8')

interface Example {
  template: string
  place: 'html' | 'text'
  contact: { email: string; first_name: string } | undefined
  data: Record<string, unknown>
  result: string
}

function readExamples(): Example[] {
  const examples: Example[] = []
  for (const [, kind, text = ''] of page.matchAll(/^```(\w+)\n(.*?)\n```$/gms)) {
    if (kind === 'template' || kind === 'html')
      examples.push({
        template: text,
        place: kind === 'html' ? 'html' : 'text',
        contact: undefined,
        data: {},
        result: '',
      })
    const last = examples.at(-1)!
    if (kind === 'data') last.data = JSON.parse(text)
    if (kind === 'contact') last.contact = JSON.parse(text)
    if (kind === 'result') last.result = text
  }
  return examples
}

t.test('every example of the page renders as documented', async t => {
  const examples = readExamples()
  t.ok(examples.length >= 8)
  for (const { template, place, contact, data, result } of examples) {
    const values = {
      system: {},
      data,
      ...(contact && {
        contact: { email: contact.email, firstName: contact.first_name, lastName: null, attributes: {} },
      }),
    }
    t.equal(renderTemplate(parseTemplate(template, place), values), result, template)
  }
})

t.test('the limits on the page are those of the program', async t => {
  const text = page.replace(/\s+/g, ' ')
  t.match(text, `nested ${MERGE_BOUNDS.depth} deep`)
  t.match(text, `${RENDER_BOUNDS.steps.toLocaleString('en')} steps`)
  t.match(text, `${RENDER_BOUNDS.units.toLocaleString('en')} characters`)
})
