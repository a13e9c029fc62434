'use strict'
// The page of a forwarder: it shows each view that arrives from /events, every two seconds, and
// changes nothing at the forwarder. All names of jobs and users are shown as text, never as HTML.

const $ = id => document.getElementById(id)
const el = (tag, text, attrs) => {
  const e = document.createElement(tag)
  if (text !== undefined) e.textContent = text
  for (const k in attrs) e.setAttribute(k, attrs[k])
  return e
}
const put = (node, text) => { if (node.textContent !== text) node.textContent = text }

const units = ['', 'k', 'M', 'G', 'T', 'P']
function amount (n, unit) {
  let i = 0
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000
  return (i === 0 ? Math.round(n) : n.toPrecision(3)) + ' ' + units[i] + unit
}
const bytes = n => amount(n, 'B')
const rate = n => amount(n, 'B/s')
function span (s) {
  if (s < 100) return s.toFixed(s < 10 ? 1 : 0) + ' s'
  if (s < 6000) return Math.round(s / 60) + ' min'
  return s < 172800 ? (s / 3600).toFixed(1) + ' h' : Math.round(s / 86400) + ' days'
}
const since = (a, b) => (Date.parse(b) - Date.parse(a)) / 1000

// facts shows the names and values of list in the element dl. It changes only what differs.
function facts (dl, list) {
  while (dl.children.length > list.length) dl.lastChild.remove()
  list.forEach(([name, value], i) => {
    let d = dl.children[i]
    if (!d) {
      d = el('div')
      d.append(el('dt'), el('dd'))
      dl.append(d)
    }
    put(d.firstChild, name)
    put(d.lastChild, String(value))
  })
}

function chart (v) {
  const most = Math.max(1, ...v.rates)
  const points = v.rates.map((r, i) => (600 * i / Math.max(1, v.rates.length - 1)).toFixed(1) + ' ' + (115 - 105 * r / most).toFixed(1))
  $('rate').querySelector('.line').setAttribute('d', points.length ? 'M' + points.join('L') : '')
  $('rate').querySelector('.area').setAttribute('d', points.length ? 'M0 120L' + points.join('L') + 'L600 120Z' : '')
  put($('rate-text'), 'Data relayed over the last ' + span(Math.max(0, v.rates.length - 1) * v.step) + ': now ' +
    rate(v.rates.at(-1) || 0) + ', at most ' + rate(most > 1 ? most : 0))
}

// matrix shows the traffic of job j from cluster to cluster. It makes a new table only if the
// clusters have changed.
function matrix (card, j) {
  const names = j.clusters.map(c => c.name)
  const shown = new Map(j.traffic.map((t, i) => [JSON.stringify([t.from, t.to]), i]))
  const known = JSON.stringify(names)
  if (card.names !== known) {
    card.names = known
    const table = el('table')
    table.append(el('caption', 'From cluster (row) to cluster (column)'))
    const head = el('tr')
    head.append(el('td'), ...names.map(n => el('th', n, { scope: 'col' })))
    const thead = el('thead')
    thead.append(head)
    const body = el('tbody')
    card.cells = []
    for (const from of names) {
      const row = el('tr')
      row.append(el('th', from, { scope: 'row' }))
      for (const to of names) {
        const cell = el('td')
        cell.append(el('span'), el('small'))
        row.append(cell)
        card.cells.push([JSON.stringify([from, to]), cell])
      }
      body.append(row)
    }
    table.append(thead, body)
    card.matrix.replaceChildren(table)
  }
  for (const [key, cell] of card.cells) {
    const i = shown.get(key)
    const t = i === undefined ? null : j.traffic[i]
    put(cell.firstChild, t && (t.frames || t.from !== t.to) ? rate(j.rates[i]) : '–')
    put(cell.lastChild, t && t.frames ? bytes(t.payload_bytes) + ' in ' + t.messages : '')
  }
}

// links shows the state of the links of each cluster's ranks and to other forwarders.
function links (card, j, v) {
  const rows = j.clusters.map(c => ['cluster ' + c.name, c.size + (c.size === 1 ? ' rank' : ' ranks') +
    (c.host ? ', the first on ' + c.host : '') + (c.arch ? ', ' + c.arch : '') + (c.origin ? ', ' + c.origin : ''),
    c.blocked_seconds ? 'full for ' + span(c.blocked_seconds) + ' of rank time' : 'free'])
  if (j.more_clusters) rows.push(['more clusters', String(j.more_clusters), ''])
  for (const t of j.trunks || []) {
    rows.push(['forwarder ' + t.forwarder, t.connections === 0 ? 'cut' : t.connections + (t.connections === 1 ? ' connection' : ' connections'),
      (t.round_trip_ms ? 'round trip ' + t.round_trip_ms.toPrecision(3) + ' ms, ' : '') + (t.congestion ? t.congestion + ', ' : '') + t.lost + ' lost' +
      (t.queued_bytes ? ', ' + bytes(t.queued_bytes) + ' wait' : '')])
  }
  while (card.links.children.length > rows.length) card.links.lastChild.remove()
  rows.forEach((r, i) => {
    let row = card.links.children[i]
    if (!row) {
      row = el('tr')
      row.append(el('th', '', { scope: 'row' }), el('td'), el('td'))
      card.links.append(row)
    }
    r.forEach((text, k) => put(row.children[k], text))
  })
}

const cards = new Map()

function newCard (j, key) {
  const card = { root: el('article', undefined, { 'data-job': j.job }), names: '', said: '' }
  const title = el('h3', j.job, { id: 'job-' + key.replace(/[^A-Za-z0-9]/g, '-') })
  card.root.setAttribute('aria-labelledby', title.id)
  card.state = el('span', '', { class: 'state' })
  const line = el('p')
  line.append(card.state, card.rest = el('span'))
  card.waits = el('p')
  card.facts = el('dl')
  card.matrix = el('div', undefined, { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Traffic of job ' + j.job })
  const more = el('details')
  const table = el('table', undefined, { class: 'links' })
  table.append(card.links = el('tbody'))
  more.append(el('summary', 'Links'), table)
  card.root.append(title, line, card.waits, card.facts, card.matrix, more)
  return card
}

const news = []

function showJob (j, v, order) {
  const key = j.job + ' ' + j.key
  let card = cards.get(key)
  if (!card) cards.set(key, card = newCard(j, key))
  card.seen = v.now
  if (card.said !== j.state) {
    card.said = j.state
    card.state.className = 'state ' + j.state
    put(card.state, j.state)
    news.push('job ' + j.job + ' is ' + j.state)
  }
  const says = [...new Set(j.clusters.map(c => c.origin).filter(Boolean))].join('; ')
  const who = [j.user && 'user ' + j.user, says].filter(Boolean).join(', ')
  put(card.rest, ', ' + j.joined + ' of ' + j.ranks + ' ranks, level ' + j.level + (who ? ', ' + who : '') +
    (j.state === 'gathering' ? ', for ' + span(since(j.created, v.now)) : ', for ' + span(since(j.started, v.now))))
  put(card.waits, j.state === 'gathering'
    ? 'Waits for ' + (j.missing || 'nobody') + (j.refused ? '; refused: ' + j.refused : '')
    : [...(j.lost || []).map(l => 'Lost cluster ' + l.cluster + ', ' + span(since(l.at, v.now)) + ' ago' +
      (l.reason ? ': ' + l.reason : '')), (j.reason || '') + (j.limited || '')].filter(Boolean).join('; '))
  const list = []
  if (j.state !== 'gathering') {
    list.push(['data', rate(j.rate)], ['messages', amount(j.message_rate, '/s')], ['over a minute', rate(j.minute_rate)],
      ['wait here', bytes(j.queued_bytes)], ['at most', bytes(j.peak_bytes)])
    if (j.ways) {
      list.push(['past this process', bytes(j.kernel?.payload_bytes ?? 0) + ' in ' + (j.kernel?.messages ?? 0) + ', as reported'],
        ['open ports', (j.doors ?? 0) + ' of ' + j.ways + ' told' + (j.ways_unused ? ', no traffic reported: a firewall?' : '')])
    }
    if (j.lost_links || j.bad_frames) list.push(['links lost', j.lost_links], ['bad frames', j.bad_frames])
  }
  facts(card.facts, list)
  card.matrix.hidden = j.state === 'gathering'
  if (j.state !== 'gathering') matrix(card, j)
  links(card, j, v)
  const at = $('jobs').children[order]
  if (at !== card.root) $('jobs').insertBefore(card.root, at || null)
}

function past (v) {
  const body = $('past').tBodies[0]
  const known = v.past.map(p => p.job + p.ended).join(' ')
  if (body.dataset.known !== known) {
    body.dataset.known = known
    body.replaceChildren(...v.past.map(p => {
      const row = el('tr')
      const began = Date.parse(p.started) > 0
      row.append(el('th', p.job, { scope: 'row' }), el('td', p.user || p.origin), el('td', began ? span(since(p.started, p.ended)) : ''),
        el('td', '', { 'data-ended': p.ended }), el('td', p.ok ? 'well' : 'failed (' + p.code + '): ' + p.reason))
      return row
    }))
  }
  for (const row of body.rows) put(row.cells[3], span(since(row.cells[3].dataset.ended, v.now)) + ' ago')
}

const times = [] // the duration of each refresh in milliseconds, which tests read

function show (v) {
  const begin = performance.now()
  put($('about'), v.addresses.join(', ') + ' · ' + v.version + ' · up ' + span(since(v.started, v.now)))
  const count = s => v.jobs.filter(j => j.state === s).length
  facts($('now'), [['running', count('running')], ['gathering', count('gathering')],
    ['links', v.links], ['data', rate(v.rates.at(-1) || 0)],
    ['kept here', bytes(v.memory.used) + ' of ' + bytes(v.memory.limit)],
    ['jobs so far', v.totals.jobs_ok + ' well, ' + v.totals.jobs_failed + ' failed'],
    ['data so far', bytes(v.totals.traffic.payload_bytes)], ['the kernel', v.kernel],
    ...(v.more_jobs ? [['jobs not shown', v.more_jobs]] : [])])
  chart(v)
  v.jobs.forEach((j, i) => showJob(j, v, i))
  for (const [key, card] of cards) {
    if (card.seen === v.now) continue
    news.push('job ' + key.split(' ')[0] + ' has ended')
    card.root.remove()
    cards.delete(key)
  }
  $('none').hidden = v.jobs.length > 0
  past(v)
  if (news.length && $('news').dataset.begun) put($('news'), news.slice(0, 3).join('; '))
  $('news').dataset.begun = 1
  news.length = 0
  document.body.getBoundingClientRect() // the layout is part of what a refresh costs
  times.push(Math.round(performance.now() - begin))
  if (times.length > 100) times.shift()
}

let paused = false
$('pause').addEventListener('click', () => {
  paused = !paused
  $('pause').setAttribute('aria-pressed', paused)
  put($('live'), paused ? 'paused' : 'live')
})

const events = new EventSource('events')
events.onmessage = e => {
  if (paused) return
  put($('live'), 'live')
  show(JSON.parse(e.data))
}
events.onerror = () => put($('live'), 'the forwarder does not answer; trying again')
