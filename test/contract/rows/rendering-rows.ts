/** Rule -> test for what a mail says: merge tags and the compliance footer, as they are received. */
import { inFile, type Row } from '../row.js'

const merged = inFile('msa/rest/merged-mail')
const tracked = inFile('tracking/tracked-served')
const RULES = 'Content rendering rules'
const LANGUAGE = merged('the whole language is understood where mail is sent')
const FOOTER = merged('the footer is as much as the mail lacks, with links of this message')

export const RENDERING_ROWS: readonly Row[] = [
  {
    rule: 'contact tags and attributes are replaced',
    from: [`${RULES} > Contact tags {{firstName}} or {{first_name}}`],
    tests: [
      LANGUAGE,
      merged("each recipient's mail is merged with their contact and the data of the request"),
    ],
  },
  {
    rule: 'system tags are replaced, empty where unset',
    from: [`${RULES} > System tags {{unsubscribe_url}} {{preferences_url}} {{company_name}}`],
    tests: [LANGUAGE, FOOTER],
  },
  {
    rule: 'fallback and format',
    from: [`${RULES} > Fallback and format {{field|fallback}} uses`],
    tests: [LANGUAGE],
  },
  {
    rule: 'conditions with every comparison',
    from: [`${RULES} > Conditions {{#if expr}}{{else}}{{/if}} and {{#unless`],
    tests: [LANGUAGE],
  },
  {
    rule: 'loops over template_data with their variables',
    from: [`${RULES} > Loops {{#each arrayName}}{{/each}} over arrays`],
    tests: [LANGUAGE],
  },
  {
    rule: 'every key of template_data is a tag; it overrides contact tags, never system tags',
    from: [`${RULES} > Every key of template_data is`],
    tests: [LANGUAGE, merged('each message of a batch is filled in with its own data')],
  },
  {
    rule: 'each HTML mail is checked for an unsubscribe link and an address, and gets what it lacks',
    from: [
      'What the service does > Email compliance the service checks',
      `${RULES} > contains \`{{unsubscribe_url}}\` and a physical address`,
      `${RULES} > contains \`{{unsubscribe_url}}\` but no address`,
      `${RULES} > no \`{{unsubscribe_url}}\``,
    ],
    tests: [FOOTER],
  },
  {
    rule: 'a managed unsubscribe link brings List-Unsubscribe and List-Unsubscribe-Post along',
    from: ['decisions: Email > Compliance "contains an address" means'],
    tests: [
      FOOTER,
      merged('marketing tells how to unsubscribe in its header, whatever is in it'),
      merged('signatures are over what was filled in, and over List-Unsubscribe'),
    ],
  },
  {
    rule: 'values are escaped for their place, subjects are one line; faults are told with line and column',
    from: ['decisions: Rendering > Values merged into HTML are'],
    tests: [
      merged('a value becomes no markup, no header and no script'),
      merged('what cannot be read or filled in is refused with its place, and nothing is accepted'),
      merged('a line break of a contact never ends the subject'),
    ],
  },
  {
    rule: 'links of unsubscribing, preferences, mailto, tel, # and other schemes stay; machines move nothing',
    from: ['decisions: Email > Tracking never rewrites unsubscribe preferences'],
    tests: [
      tracked('links to our own pages are not tracked'),
      tracked('visits by machines change neither status nor counters'),
    ],
  },
]
