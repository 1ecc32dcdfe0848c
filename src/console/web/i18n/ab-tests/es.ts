/** Texts of A/B tests: Spanish. */
import { count } from '../counts/es'
import type { abTests as texts } from './en'

export const abTests: typeof texts = {
  abTests: {
    title: 'Prueba A/B',
    intro:
      'Algunos destinatarios reciben de dos a cuatro variantes del correo; los demás, la que mejor funciona.',
    add: 'Añadir una prueba A/B',
    remove: 'Quitar la prueba A/B',
    differs: 'Qué cambia',
    differences: { subject: 'Asunto', template: 'Plantilla', sender: 'Remitente' },
    variant: name => `Variante ${name}`,
    asAbove: 'Vacío: como arriba',
    sameTemplate: 'La plantilla de arriba',
    addVariant: 'Añadir una variante',
    removeVariant: name => `Quitar la variante ${name}`,
    sample: 'Muestra',
    sampleOf: 'De los destinatarios',
    units: { percent: 'por ciento', people: 'personas' },
    gets: 'Quién recibe qué',
    each: (name, people) => `${name}: ${count(people, 'destinatario', 'destinatarios')}`,
    rest: people => `Ganadora: ${count(people, 'destinatario', 'destinatarios')}`,
    unknown: 'Se cuenta en cuanto haya guardado.',
    winnerBy: 'La ganadora tiene',
    metrics: { clicks: 'Más clics', opens: 'Más aperturas' },
    opensHint:
      'Apple Mail abre los correos por sí mismo, así que las aperturas dicen poco. Los clics son de personas.',
    decided: 'Se elige',
    decisions: { rule: 'Por sí sola, tras un tiempo', person: 'Por usted' },
    after: 'Después de',
    unit: 'Unidad',
    timeUnits: { minutes: 'minutos', hours: 'horas', days: 'días' },
    afterHint: 'Desde que toda la muestra está en cola. Puede elegir antes.',
    ifUnclear: 'Si la ventaja puede ser casualidad',
    unclear: { best: 'La mejor gana de todos modos', manual: 'Elijo yo' },
    testVariant: 'Variante que se envía',
    checkVariant: names => `Variante ${names}`,
    phases: {
      draft: 'Aún no se ha enviado.',
      sampling: 'Se está enviando la muestra.',
      waiting: 'La muestra se ha enviado. Los demás esperan a la ganadora.',
      undecided:
        'El tiempo ha terminado y ninguna variante destaca con claridad. Elija la ganadora; los demás la esperan.',
      decided: 'Hay una ganadora.',
      ended: 'La campaña terminó antes de que hubiera una ganadora.',
    },
    decidesAt: 'Decisión:',
    decidesIn: time => `en ${time}`,
    youChoose: 'Elija la ganadora cuando haya visto bastante.',
    byRule: name => `La variante ${name} ganó según la regla`,
    byPerson: name => `La variante ${name} fue elegida ganadora`,
    clear: 'Su ventaja es más que casualidad.',
    notClear: 'La diferencia puede ser casualidad.',
    winner: 'Ganadora',
    leads: 'Va por delante',
    people: 'Destinatarios',
    conversions: 'Conversiones',
    revenue: 'Ingresos',
    others: 'Los demás',
    othersText: name => `Reciben la variante ${name}.`,
    othersWait: 'Reciben la ganadora.',
    choose: name => `Elegir ${name}`,
    chooseTitle: name => `¿Elegir la variante ${name}?`,
    chooseText: people =>
      people === 0
        ? 'No queda nadie a quien escribir. La elección es definitiva.'
        : `${count(people, 'destinatario recibe', 'destinatarios reciben')} esta variante. La elección es definitiva.`,
    chosen: name => `La variante ${name} va a los demás`,
    template: 'Plantilla',
    sender: 'Remitente',
  },
}
