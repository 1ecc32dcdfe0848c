/** Texts of A/B tests: French. */
import { count } from '../counts/fr'
import type { abTests as texts } from './en'

export const abTests: typeof texts = {
  abTests: {
    title: 'Test A/B',
    intro:
      'Quelques destinataires reçoivent deux à quatre variantes du message ; les autres, celle qui réussit le mieux.',
    add: 'Ajouter un test A/B',
    remove: 'Retirer le test A/B',
    differs: 'Ce qui diffère',
    differences: { subject: 'Objet', template: 'Modèle', sender: 'Expéditeur' },
    variant: name => `Variante ${name}`,
    asAbove: 'Vide : comme ci-dessus',
    sameTemplate: 'Le modèle ci-dessus',
    addVariant: 'Ajouter une variante',
    removeVariant: name => `Retirer la variante ${name}`,
    sample: 'Échantillon',
    sampleOf: 'Parmi les destinataires',
    units: { percent: 'pour cent', people: 'personnes' },
    gets: 'Qui reçoit quoi',
    each: (name, people) => `${name} : ${count(people, 'destinataire', 'destinataires')}`,
    rest: people => `Gagnante : ${count(people, 'destinataire', 'destinataires')}`,
    unknown: 'Compté dès que vous aurez enregistré.',
    winnerBy: 'La gagnante a',
    metrics: { clicks: 'Plus de clics', opens: 'Plus d’ouvertures' },
    opensHint:
      'Apple Mail ouvre les messages de lui-même ; les ouvertures disent donc peu. Les clics viennent de personnes.',
    decided: 'Elle est choisie',
    decisions: { rule: 'D’elle-même, après un délai', person: 'Par vous' },
    after: 'Après',
    unit: 'Unité',
    timeUnits: { minutes: 'minutes', hours: 'heures', days: 'jours' },
    afterHint: 'À partir du moment où tout l’échantillon est en file. Vous pouvez choisir plus tôt.',
    ifUnclear: 'Si l’avance peut être due au hasard',
    unclear: { best: 'La meilleure gagne quand même', manual: 'Je choisis' },
    testVariant: 'Variante à envoyer',
    checkVariant: names => `Variante ${names}`,
    phases: {
      draft: 'Pas encore envoyé.',
      sampling: 'L’échantillon est en cours d’envoi.',
      waiting: 'L’échantillon est envoyé. Les autres attendent la gagnante.',
      undecided:
        'Le délai est écoulé et aucune variante ne mène nettement. Choisissez la gagnante ; les autres l’attendent.',
      decided: 'Il y a une gagnante.',
      ended: 'La campagne a pris fin avant qu’il y ait une gagnante.',
    },
    decidesAt: 'Décision :',
    decidesIn: time => `dans ${time}`,
    youChoose: 'Choisissez la gagnante quand vous en avez assez vu.',
    byRule: name => `La variante ${name} a gagné selon la règle`,
    byPerson: name => `La variante ${name} a été choisie`,
    clear: 'Son avance n’est pas due au hasard.',
    notClear: 'La différence peut être due au hasard.',
    winner: 'Gagnante',
    leads: 'En tête',
    people: 'Destinataires',
    conversions: 'Conversions',
    revenue: 'Chiffre d’affaires',
    others: 'Les autres',
    othersText: name => `Ils reçoivent la variante ${name}.`,
    othersWait: 'Ils reçoivent la gagnante.',
    choose: name => `Choisir ${name}`,
    chooseTitle: name => `Choisir la variante ${name} ?`,
    chooseText: people =>
      people === 0
        ? 'Il ne reste personne à contacter. Le choix est définitif.'
        : `${count(people, 'destinataire reçoit', 'destinataires reçoivent')} cette variante. Le choix est définitif.`,
    chosen: name => `La variante ${name} part aux autres`,
    template: 'Modèle',
    sender: 'Expéditeur',
  },
}
