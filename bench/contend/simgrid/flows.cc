// The same messages on the same platform by SimGrid (simgrid.org), for comparison:
//
//   g++ -O2 -o build/simgrid bench/contend/simgrid/flows.cc -lsimgrid      (Debian: libsimgrid-dev)
//   zipper bench contention --again DIR --output DIR --simgrid build/simgrid
//
// WAY is "flows", where a message is one flow over all links on its way, or "forwarder", where
// zippers are actors that pass on pieces of it. Further arguments are SimGrid's. It reads
//
//   host NAME
//   zipper NAME
//   link NAME BYTES_PER_SECOND SECONDS
//   route FROM TO LINK...
//   message FROM TO BYTES START VIA     VIA is a zipper, or -
//
// and writes when each message was there, in seconds, a line each.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

// Pieces of a message have the product's size; of each message a window of them may be on the way.
constexpr double kPiece = 128 << 10;
constexpr int kWindow = 32; // pieces

struct Message {
  std::string from, to, via;
  double bytes = 0, start = 0, finish = 0;
};

// Queue is pieces that wait for somebody.
struct Queue {
  std::deque<std::function<void()>> pieces;
  sg4::SemaphorePtr there = sg4::Semaphore::create(0);
  void push(std::function<void()> f) {
    pieces.push_back(std::move(f));
    there->release();
  }
  void serve() {
    for (;;) {
      there->acquire();
      auto f = std::move(pieces.front());
      pieces.pop_front();
      f();
    }
  }
};

class World {
public:
  explicit World(std::string way) : way_(std::move(way)) {}

  void read(std::istream &in) {
    zone_ = sg4::create_full_zone("net");
    std::map<std::string, sg4::Link *> links;
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string kind, name, to;
      words >> kind >> name;
      if (kind == "host" || kind == "zipper") {
        hosts_[name] = zone_->create_host(name, 1e9)->seal();
      } else if (kind == "link") {
        double rate = 0, latency = 0;
        words >> rate >> latency;
        if (way_ == "forwarder") latency = 0; // else every piece has it
        links[name] = zone_->create_link(name, rate)->set_latency(latency)->seal();
      } else if (kind == "route") {
        std::vector<sg4::LinkInRoute> list;
        words >> to;
        for (std::string l; words >> l;) list.emplace_back(links.at(l));
        zone_->add_route(hosts_.at(name)->get_netpoint(), hosts_.at(to)->get_netpoint(), nullptr, nullptr, list, false);
      } else if (kind == "message") {
        Message m;
        m.from = name;
        words >> m.to >> m.bytes >> m.start >> m.via;
        messages_.push_back(m);
      }
    }
    zone_->seal();
  }

  void start() {
    if (way_ == "forwarder") {
      connections();
      return;
    }
    for (auto &m : messages_) flow(m);
  }

  void tell() const {
    for (const auto &m : messages_) std::printf("%.9f\n", m.finish);
  }

private:
  void flow(Message &m) {
    sg4::Actor::create(m.from + ">" + m.to, hosts_.at(m.from), [this, &m] {
      sg4::this_actor::sleep_until(m.start);
      sg4::Comm::sendto(hosts_.at(m.from), hosts_.at(m.to), m.bytes);
      m.finish = sg4::Engine::get_clock();
    });
  }

  Queue &out(const std::string &zipper, const std::string &host) {
    auto &q = queues_[zipper + ">" + host];
    if (!q) {
      q = std::make_unique<Queue>();
      Queue *mine = q.get();
      sg4::Actor::create(zipper + ">" + host, hosts_.at(zipper), [mine] { mine->serve(); })->daemonize();
    }
    return *q;
  }

  // What a host sends by a zipper is one connection: pieces of its messages in turn, as far as
  // their windows allow.
  void connections() {
    std::map<std::pair<std::string, std::string>, std::vector<Message *>> of;
    for (auto &m : messages_) {
      if (m.via == "-") flow(m);
      else of[{m.from, m.via}].push_back(&m);
    }
    for (auto &[ends, list] : of) {
      for (auto *m : list) out(m->via, m->to);
      sg4::Actor::create(ends.first + ">" + ends.second, hosts_.at(ends.first),
                         [this, from = ends.first, zipper = ends.second, list = list] { send(from, zipper, list); });
    }
  }

  void send(const std::string &from, const std::string &zipper, const std::vector<Message *> &list) {
    struct State {
      Message *m;
      double left, missing;
      int window = kWindow;
    };
    std::vector<std::shared_ptr<State>> open;
    double start = 0;
    for (auto *m : list) {
      open.push_back(std::make_shared<State>(State{m, m->bytes, m->bytes}));
      start = std::max(start, m->start);
    }
    sg4::this_actor::sleep_until(start);
    auto credit = sg4::Semaphore::create(0);
    int under_way = 0;
    for (size_t next = 0; !open.empty();) {
      size_t looked = 0;
      while (looked < open.size() && open[next % open.size()]->window == 0) {
        next++;
        looked++;
      }
      if (looked == open.size()) {
        credit->acquire();
        under_way--;
        continue;
      }
      next %= open.size();
      auto s = open[next];
      double n = std::min(kPiece, s->left);
      s->left -= n;
      s->window--;
      under_way++;
      sg4::Comm::sendto(hosts_.at(from), hosts_.at(zipper), n);
      out(zipper, s->m->to).push([this, s, n, zipper, credit] {
        sg4::Comm::sendto(hosts_.at(zipper), hosts_.at(s->m->to), n);
        s->window++;
        credit->release();
        if ((s->missing -= n) <= 0) s->m->finish = sg4::Engine::get_clock();
      });
      if (s->left <= 0) open.erase(open.begin() + static_cast<long>(next));
      else next++;
    }
    for (; under_way > 0; under_way--) credit->acquire(); // the run ends with the last sender
  }

  std::string way_;
  sg4::NetZone *zone_ = nullptr;
  std::map<std::string, sg4::Host *> hosts_;
  std::vector<Message> messages_;
  std::map<std::string, std::unique_ptr<Queue>> queues_;
};

} // namespace

int main(int argc, char **argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 2 || (std::string(argv[1]) != "flows" && std::string(argv[1]) != "forwarder")) {
    std::cerr << "usage: simgrid flows|forwarder [--cfg=...] < platform and messages\n";
    return 2;
  }
  World world(argv[1]);
  world.read(std::cin);
  world.start();
  engine.run();
  world.tell();
  return 0;
}
