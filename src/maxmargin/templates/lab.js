// What Bokeh leaves out. Its widgets live in shadow roots, which style sheets and attributes of the page do not reach:
// every root gets the colours of the page here, and what is in it names, values and states for screen readers.
(() => {
  const colours = new CSSStyleSheet()
  colours.replaceSync(document.getElementById('widget-css').textContent)

  const set = (element, name, value) => {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value)
  }
  const textOf = (element) => (element?.textContent ?? '').trim()
  const inner = (event) => event.composedPath()[0]

  // The title holds name and value: "C = 1:", "steps per second: 8".
  function slider(root) {
    const title = textOf(root.querySelector('.bk-slider-title')).replace(/:$/, '')
    const [name, ...value] = title.split(/ = |: /)
    for (const handle of root.querySelectorAll('.noUi-handle')) {
      set(handle, 'aria-label', name)
      if (value.length) set(handle, 'aria-valuetext', value.join(' '))
    }
  }

  function buttons(root, host) {
    const group = root.querySelector('.bk-btn-group')
    if (group) {
      set(group, 'role', 'group')
      set(group, 'aria-label', host.dataset.name ?? 'choice')
    }
    for (const button of root.querySelectorAll('.bk-btn')) {
      set(button, 'aria-pressed', button.classList.contains('bk-active'))
    }
  }

  // A choice without a title above it.
  function choice(root, host) {
    const select = root.querySelector('select')
    if (select && host.dataset.name) set(select, 'aria-label', host.dataset.name)
  }

  function tabs(root) {
    const all = [...root.querySelectorAll('.bk-tab')]
    set(root.querySelector('.bk-headers-wrapper'), 'role', 'tablist')
    for (const tab of all) {
      const active = tab.classList.contains('bk-active')
      set(tab, 'role', 'tab')
      set(tab, 'aria-selected', active)
      set(tab, 'tabindex', active ? 0 : -1)
    }
  }

  function onTabKey(event) {
    const tab = inner(event)
    if (!tab.classList?.contains('bk-tab')) return
    const all = [...tab.parentElement.children], at = all.indexOf(tab)
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1, Enter: at, ' ': at}[event.key]
    if (to === undefined) return
    event.preventDefault()
    const next = all[(to + all.length) % all.length]
    next.click()
    next.focus()
  }

  function spinner(root) {
    for (const [side, name] of [['up', 'more'], ['down', 'less']]) {
      const button = root.querySelector(`.bk-spin-btn-${side}`)
      if (!button) continue
      set(button, 'aria-label', name)
      set(button, 'tabindex', -1)  // the arrow keys do the same
    }
  }

  // A picture is described on its canvas: its toolbar stays a toolbar.
  function canvas(root, host) {
    const figure = host.getRootNode().host
    const surface = root.querySelector('.bk-events'), picture = root.querySelector('canvas')
    if (!figure || !surface || !picture) return
    set(picture, 'role', 'img')
    set(picture, 'aria-label', figure.dataset.description ?? 'figure')
    if (figure.dataset.points) {
      set(surface, 'role', 'application')
      set(surface, 'aria-label', `${figure.dataset.description ?? ''} ${KEYS}`)
    } else {
      set(surface, 'tabindex', -1)
    }
  }

  function figure(root) {
    const drawn = root.querySelector('.bk-Canvas')
    if (drawn?.shadowRoot) canvas(drawn.shadowRoot, drawn)
  }

  function toolbar(root, host) {
    set(host, 'role', 'toolbar')
    set(host, 'aria-label', 'tools of the picture')
    for (const tool of root.querySelectorAll('[title]')) {
      set(tool, 'role', 'button')
      set(tool, 'aria-label', tool.title)
      if (tool.classList.contains('bk-OnOffButton')) set(tool, 'aria-pressed', tool.classList.contains('bk-active'))
    }
  }

  function onToolKey(event) {
    const tool = inner(event)
    if (tool.matches?.('.bk-OnOffButton, .bk-ClickButton') && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault()
      tool.click()
    }
  }

  // The columns are named in every cell: the heads of the table are outside of what holds the rows.
  function table(root, host) {
    const heads = [...root.querySelectorAll('.slick-header-columns-left .slick-column-name')].map(textOf)
    for (const pane of root.querySelectorAll('.slick-pane, .grid-canvas')) set(pane, 'tabindex', -1)
    for (const rows of root.querySelectorAll('.grid-canvas-left')) {
      if (!rows.firstElementChild) continue
      set(rows, 'role', 'grid')
      set(rows, 'aria-label', host.dataset.name ?? 'table')
      for (const row of rows.children) {
        set(row, 'role', 'row')
        set(row, 'aria-selected', row.querySelector('.selected') !== null)
        const cells = [...row.querySelectorAll('.slick-cell')]
        cells.forEach((cell, at) => {
          set(cell, 'role', 'gridcell')
          set(cell, 'aria-label', `${heads[at]}: ${textOf(cell)}`)
        })
      }
    }
  }

  const KINDS = {
    'bk-Slider': slider, 'bk-Toggle': buttons, 'bk-RadioButtonGroup': buttons, 'bk-Select': choice, 'bk-Tabs': tabs,
    'bk-Spinner': spinner, 'bk-Canvas': canvas, 'bk-Figure': figure, 'bk-Toolbar': toolbar, 'bk-DataTable': table,
  }
  function describe(host) {
    for (const kind of host.classList) KINDS[kind]?.(host.shadowRoot, host)
  }

  const watcher = new MutationObserver((changes) => {
    const hosts = new Set()
    for (const {target} of changes) {
      if (target.shadowRoot) hosts.add(target)
      hosts.add(target.getRootNode().host)
    }
    for (const host of hosts) if (host) describe(host)
  })
  const OBSERVED = {
    childList: true, subtree: true, characterData: true, attributes: true,
    attributeFilter: ['class', 'title', 'aria-valuetext', 'data-description', 'data-name', 'data-points'],
  }
  const attach = Element.prototype.attachShadow
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options)
    root.adoptedStyleSheets = [colours]
    watcher.observe(root, OBSERVED)
    return root
  }
  document.addEventListener('keydown', onTabKey)
  document.addEventListener('keydown', onToolKey)

  // Points by the keyboard -------------------------------------------------------------------------------------------

  const KEYS = 'N and P choose the next and the previous point, arrows move it (further with Shift), A adds one, ' +
    'Delete removes it, Escape chooses none.'
  const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1]}

  function changed(points, change) {
    const data = {}
    for (const [name, values] of Object.entries(points.data)) data[name] = Array.from(values)
    change(data)
    points.data = data
  }

  function onPointKey(event) {
    const surface = inner(event)
    const host = surface.getRootNode?.().host?.getRootNode().host
    if (!host?.dataset.points || event.ctrlKey || event.metaKey || event.altKey) return
    const named = (name) => Bokeh.documents[0].get_model_by_name(name)
    const points = named('points'), plot = Bokeh.index.find_one(host)?.model ?? named(host.dataset.points)
    const n = points.data.x.length, at = points.selected.indices[0] ?? -1
    const {x_range, y_range} = plot
    const step = (range) => (range.end - range.start) * (event.shiftKey ? 0.05 : 0.01)
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    if (key in MOVES && at >= 0) {
      const [across, up] = MOVES[key]
      changed(points, (data) => {
        data.x[at] += across * step(x_range)
        data.y[at] += up * step(y_range)
      })
    } else if ((key === 'n' || key === 'p') && n) {
      const next = key === 'n' ? at + 1 : at - 1
      points.selected.indices = [at < 0 && key === 'p' ? n - 1 : (next + n) % n]
    } else if (key === 'a') {
      const pen = named('pen')
      const here = at < 0
        ? [(x_range.start + x_range.end) / 2, (y_range.start + y_range.end) / 2]
        : [points.data.x[at] + 3 * step(x_range), points.data.y[at]]
      changed(points, (data) => {
        data.x.push(here[0])
        data.y.push(here[1])
        data.label.push(String(pen.active))
      })
      points.selected.indices = [n]
    } else if (key === 'Delete' && at >= 0) {
      const gone = new Set(points.selected.indices)
      points.selected.indices = []
      changed(points, (data) => {
        for (const name of Object.keys(data)) data[name] = data[name].filter((_, k) => !gone.has(k))
      })
    } else if (key === 'Escape') {
      points.selected.indices = []
    } else {
      return
    }
    event.preventDefault()
  }
  document.addEventListener('keydown', onPointKey)
})()
