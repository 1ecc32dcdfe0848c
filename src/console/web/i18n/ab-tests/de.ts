/** Texts of A/B tests: German. */
import { count } from '../counts/de'
import type { abTests as texts } from './en'

export const abTests: typeof texts = {
  abTests: {
    title: 'A/B-Test',
    intro:
      'Einige Empfänger bekommen zwei bis vier Varianten der Mail; die übrigen die, die am besten ankommt.',
    add: 'A/B-Test hinzufügen',
    remove: 'A/B-Test entfernen',
    differs: 'Was sich unterscheidet',
    differences: { subject: 'Betreff', template: 'Vorlage', sender: 'Absender' },
    variant: name => `Variante ${name}`,
    asAbove: 'Leer: wie oben',
    sameTemplate: 'Die Vorlage oben',
    addVariant: 'Variante hinzufügen',
    removeVariant: name => `Variante ${name} entfernen`,
    sample: 'Stichprobe',
    sampleOf: 'Der Empfänger',
    units: { percent: 'Prozent', people: 'Personen' },
    gets: 'Wer was bekommt',
    each: (name, people) => `${name}: ${count(people, 'Empfänger', 'Empfänger')}`,
    rest: people => `Sieger: ${count(people, 'Empfänger', 'Empfänger')}`,
    unknown: 'Wird gezählt, sobald Sie gespeichert haben.',
    winnerBy: 'Der Sieger hat',
    metrics: { clicks: 'Mehr Klicks', opens: 'Mehr Öffnungen' },
    opensHint: 'Apple Mail öffnet Mails von selbst; Öffnungen sagen daher wenig. Klicks sind von Menschen.',
    decided: 'Er wird gewählt',
    decisions: { rule: 'Von selbst, nach einer Zeit', person: 'Von Ihnen' },
    after: 'Nach',
    timeUnits: { minutes: 'Minuten', hours: 'Stunden', days: 'Tagen' },
    afterHint: 'Ab dem Moment, in dem die ganze Stichprobe eingereiht ist. Sie können früher wählen.',
    ifUnclear: 'Wenn der Vorsprung Zufall sein kann',
    unclear: { best: 'Die beste gewinnt trotzdem', manual: 'Ich wähle' },
    testVariant: 'Zu sendende Variante',
    checkVariant: names => `Variante ${names}`,
    phases: {
      draft: 'Noch nicht gesendet.',
      sampling: 'Die Stichprobe wird gesendet.',
      waiting: 'Die Stichprobe ist gesendet. Die übrigen warten auf den Sieger.',
      undecided:
        'Die Zeit ist um, und keine Variante führt deutlich. Wählen Sie den Sieger; die übrigen warten darauf.',
      decided: 'Der Sieger steht fest.',
      ended: 'Die Kampagne endete, bevor es einen Sieger gab.',
    },
    decidesIn: time => `Der Sieger wird in ${time} gewählt.`,
    youChoose: 'Wählen Sie den Sieger, wenn Sie genug gesehen haben.',
    byRule: name => `Variante ${name} hat nach der Regel gewonnen`,
    byPerson: name => `Variante ${name} wurde zum Sieger gewählt`,
    clear: 'Der Vorsprung ist mehr als Zufall.',
    notClear: 'Der Unterschied kann Zufall sein.',
    winner: 'Sieger',
    leads: 'Führt',
    people: 'Empfänger',
    others: 'Die übrigen',
    othersText: name => `Sie bekommen Variante ${name}.`,
    othersWait: 'Sie bekommen den Sieger.',
    choose: name => `${name} wählen`,
    chooseTitle: name => `Variante ${name} wählen?`,
    chooseText: people =>
      people === 0
        ? 'Es ist niemand mehr anzuschreiben. Die Wahl ist endgültig.'
        : `${count(people, 'Empfänger bekommt', 'Empfänger bekommen')} diese Variante. Die Wahl ist endgültig.`,
    chosen: name => `Variante ${name} geht an die übrigen`,
    template: 'Vorlage',
    sender: 'Absender',
  },
}
