/** The links of the appliance's own mail, which its log shows with `mta.capture` and nothing else does. */
import { until } from '../until.js'
import type { TestAppliance } from './appliance.js'

/** Tokens of all links to the address, latest last. */
export function mailedLinks({ log }: Pick<TestAppliance, 'log'>, recipient: string): string[] {
  return log.lines
    .filter(({ event, fields }) => event === 'account mail captured' && fields['recipient'] === recipient)
    .flatMap(({ fields }) => /#\/link\/([\w-]{43})$/.exec(String(fields['link']))?.[1] ?? [])
}

/** @param count how many there are by then */
export async function mailedLink(appliance: TestAppliance, recipient: string, count = 1): Promise<string> {
  return until(`${count} links to ${recipient}`, () => {
    const links = mailedLinks(appliance, recipient)
    return links.length >= count && links.at(-1)
  })
}
