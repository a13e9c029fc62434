package platform

// lab is the platform of most tests; the numbers are those of the worked
// examples (E1 to E4 of the vectors' source).
const lab = `
name: lab
clusters:
  - name: a
    hosts: 4
    cores: 2
    nic: 3500 MB/s
  - name: b
    hosts: [h1, h2, h3, h4]
    cores: 2
    speed: 2
    nic: {in: 3500MB/s, out: 3500 MB/s, asymmetric: true}
zippers:
  - name: z1
    cores: 2
    ports:
      a: 3500 MB/s
      b: 3500 MB/s
    forwarder: {copy: 2000 MB/s}
`
