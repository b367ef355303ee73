// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/login_batch.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/share/reveal.h"

namespace mpckdc::bench {
namespace {

// --- costs ---------------------------------------------------------------------------------------

Cost CostOfMacs(const LoginSizes& sizes, Adder adder, size_t n, size_t bytes, bool shared) {
  return CostOfHmac(sizes.enctype.hash, adder, std::vector<HmacShape>(n, {bytes, shared}));
}
Cost CostOfOpening(size_t blocks) { return {1, blocks * sizeof(Block), blocks * sizeof(Block)}; }
Cost CostOfZeroChecks(size_t n) { return {2, n * 2 * sizeof(Block), n * sizeof(Block)}; }
constexpr size_t kIvBytes = 16;

// RFC 3962's HMAC is of the text, RFC 8009's of IV and ciphertext.
bool MacOfText(const LoginSizes& sizes) {
  return sizes.enctype.family == EnctypeFamily::kRfc3962;
}
Cost CostOfPreauthMacs(const LoginSizes& sizes, Adder adder, size_t n) {
  const bool of_text = MacOfText(sizes);
  return CostOfMacs(sizes, adder, n, of_text ? kPreauthBytes : kIvBytes + kPreauthBytes, of_text);
}
Cost CostOfReplyMacs(const LoginSizes& sizes, Adder adder, size_t n) {
  const bool of_text = MacOfText(sizes);
  const size_t bytes = of_text ? sizes.text_bytes : kIvBytes + sizes.text_bytes;
  return CostOfMacs(sizes, adder, n, bytes, of_text);
}

}  // namespace

DeclaredSends DeclaredOfLogins(const BenchSetup& setup, size_t n) {
  if (n == 0) return {};
  const LoginSetup& login = *setup.login;
  const LoginSizes sizes(setup);
  const bool of_text = MacOfText(sizes);
  const Cost decrypt = CostOfCtsDecrypt(
      sizes.bits, std::vector<size_t>(n, kPreauthBytes), setup.sbox);
  const Cost open = CostOfOpening(n * CtsBlocks(kPreauthBytes));
  const Cost checked = CostOfPreauthMacs(sizes, login.adder, n) + CostOfZeroChecks(n);
  const Cost preauth = of_text ? decrypt + checked + open : Together(checked, decrypt + open);
  Cost arrival = Together(preauth, CostOfAes(AesBits::k256, n * kTicketBlocks, setup.sbox));
  if (login.checksum) {
    arrival = Together(arrival, CostOfMacs(sizes, login.adder, n, login.request_bytes, false));
  }
  const Cost input = {1, n * CtsBlocks(login.reply_bytes) * sizeof(Block), 0};
  const Cost chain = CostOfCtsEncrypt(
      sizes.bits, std::vector<size_t>(n, sizes.text_bytes), setup.sbox);
  const Cost macs = CostOfReplyMacs(sizes, login.adder, n);
  const Cost reply = of_text ? Together(chain, macs)
                             : chain + CostOfOpening(n * CtsBlocks(sizes.text_bytes)) + macs;
  Cost cost = arrival + input + reply;
  if (setup.randomness == Randomness::kExchanged) {  // three times RunTogether()
    cost = {cost.rounds + 3, 2 * cost.bytes_to_next, cost.bytes_to_prev};
  }
  // To the previous party: the check's second round, the time's opening, the message's. The first
  // two may fall into one round where they are in chains of their own.
  const bool merged = !of_text && checked.rounds == decrypt.rounds + open.rounds;
  return {cost, cost.rounds + (merged ? 1 : 2) + (of_text ? 0 : 1)};
}

// --- the batch -----------------------------------------------------------------------------------

LoginBatch::LoginBatch(const BenchSetup& setup, int party, size_t first, size_t logins)
    : setup_(setup),
      sizes_(setup),
      party_(party),
      first_(first),
      logins_(logins),
      adder_(setup.login->adder),
      keys_(setup, party, first, logins),
      requests_(logins),
      reply_hashed_(logins),
      reply_shares_(logins * CtsBlocks(setup.login->reply_bytes)),
      decrypt_(sizes_.bits, setup.isa),
      preauth_mac_(sizes_.enctype.hash, setup.isa),
      checksum_(sizes_.enctype.hash, setup.isa),
      reply_mac_(sizes_.enctype.hash, setup.isa),
      ticket_(AesBits::k256, setup.isa),
      cts_(sizes_.bits, setup.isa),
      outputs_(logins * sizes_.outputs) {
  PrepareHash(sizes_.enctype.hash, adder_);
  const LoginOracle oracle(setup);
  for (size_t i = 0; i < logins; ++i) {
    timestamps_.push_back(TimestampOf(setup, first + i));
    preauths_.push_back(oracle.Preauth(first + i));
    requests_[i] = RequestOf(setup, first + i, 0);
    Bytes& hashed = preauth_hashed_.emplace_back(kIvBytes);
    hashed.insert(hashed.end(), preauths_[i].begin(), preauths_[i].begin() + kPreauthBytes);
    for (size_t b = 0; b < kTicketBlocks; ++b) {
      ticket_lanes_.push_back({keys_.Ticket(), nullptr, TicketInput(first + i, b, 0)});
    }
  }
}

// The KDC splits each reply: P1 and P2 have what is drawn, P0 has the rest.
void LoginBatch::SetBatch(uint32_t batch) {
  const size_t blocks = CtsBlocks(setup_.login->reply_bytes);
  for (size_t i = 0; i < logins_; ++i) {
    const Block numbers = InputOf(first_ + i, batch);
    std::copy(numbers.begin(), numbers.end(), requests_[i].begin());
    SecretVector<Block> drawn(2 * blocks);
    DrawFromSeed(setup_.seed, Stream::kReplyShares, first_ + i,
                 absl::MakeSpan(drawn.front().data(), 2 * blocks * sizeof(Block)));
    Block* own = &reply_shares_[i * blocks];
    if (party_ != 0) {
      std::copy_n(&drawn[(static_cast<size_t>(party_) - 1) * blocks], blocks, own);
      continue;
    }
    const Bytes reply = ReplyOf(setup_, first_ + i, batch);
    for (size_t b = 0; b < blocks; ++b) {
      Block text{};
      std::copy_n(&reply[16 * b], std::min(size_t{16}, reply.size() - 16 * b), text.begin());
      own[b] = XorBlocks(text, XorBlocks(drawn[b], drawn[blocks + b]));
    }
  }
  for (AesLane& lane : ticket_lanes_) mpckdc::bench::SetBatch(lane.public_input, batch);
}

absl::Status LoginBatch::Run(PartyContext& session, Cost* cost) {
  SetBatch(session.batch());
  absl::Status s = Arrival(session, cost);
  return s.ok() ? Reply(session, cost) : s;
}

absl::Status LoginBatch::Arrival(PartyContext& session, Cost* cost) {
  std::vector<CtsDecryptLane> messages;
  for (size_t i = 0; i < logins_; ++i) {
    messages.push_back(
        {keys_.Preauth(i), absl::MakeConstSpan(preauths_[i]).first(kPreauthBytes)});
  }
  decrypt_.Reset(messages, setup_.sbox);
  ticket_.Reset(ticket_lanes_, setup_.sbox);

  ZeroCheck check(session, "pre-authentication", setup_.isa);
  OpenToServers open(party_, "time of a pre-authentication");
  const auto begin_mac = [this] { BeginPreauthMac(); };
  const auto begin_check = [this, &check] { BeginZeroCheck(check); };
  const auto begin_open = [this, &open] {
    opening_.clear();
    for (size_t i = 0; i < logins_; ++i) {
      opening_.insert(opening_.end(), decrypt_.text(i).begin(), decrypt_.text(i).end());
    }
    open.Reset(opening_);
  };
  const CircuitChain::Step decrypt = {&decrypt_, nullptr, decrypt_.DeclaredCost()};
  const CircuitChain::Step mac = {&preauth_mac_, begin_mac,
                                  CostOfPreauthMacs(sizes_, adder_, logins_)};
  const CircuitChain::Step compare = {&check, begin_check, CostOfZeroChecks(logins_)};
  const CircuitChain::Step opening = {&open, begin_open,
                                      CostOfOpening(logins_ * CtsBlocks(kPreauthBytes))};
  CircuitChain preauth, time;
  if (MacOfText(sizes_)) {
    preauth.Reset({decrypt, mac, compare, opening});
  } else {
    preauth.Reset({mac, compare});
    time.Reset({decrypt, opening});
  }
  std::vector<HmacLane> requests;
  for (size_t i = 0; setup_.login->checksum && i < logins_; ++i) {
    requests.push_back({keys_.Checksum(i), requests_[i], nullptr, 0});
  }
  checksum_.Reset(requests, adder_);
  Circuit* const circuits[] = {&preauth, &time, &checksum_, &ticket_};
  absl::Status s = RunTogether(session, circuits, cost);
  return s.ok() ? CheckPreauth(check, open) : s;
}

void LoginBatch::BeginPreauthMac() {
  std::vector<HmacLane> lanes;
  for (size_t i = 0; i < logins_; ++i) {
    HmacLane& lane = lanes.emplace_back();
    lane.states = keys_.StatesOf(keys_.Preauth(i));
    if (MacOfText(sizes_)) {
      lane.shared_message = decrypt_.text(i).data();
      lane.bytes = kPreauthBytes;
    } else {
      lane.public_message = preauth_hashed_[i];
    }
  }
  preauth_mac_.Reset(lanes, adder_);
}

// The HMAC that was computed and the one that came, in the bytes that there are.
void LoginBatch::BeginZeroCheck(ZeroCheck& check) {
  const size_t mac_bytes = sizes_.enctype.mac_bytes, blocks = CtsBlocks(mac_bytes);
  differences_.assign(logins_ * blocks, SharedBlock{});
  std::vector<absl::Span<const SharedBlock>> items;
  for (size_t i = 0; i < logins_; ++i) {
    const absl::Span<const SharedBlock> digest = preauth_mac_.digest(i);
    SharedBlock* difference = &differences_[i * blocks];
    for (size_t k = 0; k < mac_bytes; ++k) {
      difference[k / 16].x[k % 16] = digest[k / 16].x[k % 16];
      difference[k / 16].a[k % 16] =
          digest[k / 16].a[k % 16] ^ preauths_[i][kPreauthBytes + k];
    }
    items.push_back(absl::MakeConstSpan(difference, blocks));
  }
  check.Reset(items);
}

absl::Status LoginBatch::CheckPreauth(const ZeroCheck& check, const OpenToServers& opened) const {
  const size_t blocks = CtsBlocks(kPreauthBytes);
  for (size_t i = 0; i < logins_; ++i) {
    if (check.zero()[i] != 1) {
      return absl::InternalError(absl::StrCat("the pre-authentication's HMAC of login ",
                                              first_ + i, " is wrong"));
    }
    const uint8_t* time = opened.values()[i * blocks + 1].data();
    if (std::memcmp(time, timestamps_[i].data(), kTimestampBytes) != 0) {
      return absl::InternalError(absl::StrCat("the time of login ", first_ + i, " is wrong"));
    }
  }
  return absl::OkStatus();
}

absl::Status LoginBatch::Reply(PartyContext& session, Cost* cost) {
  input_.Reset(reply_shares_);
  absl::Status s = RunTogether(session, {&input_}, cost);
  if (!s.ok()) return s;
  BeginCts(session);
  if (MacOfText(sizes_)) {
    BeginReplyMac(nullptr);
    s = RunTogether(session, {&cts_, &reply_mac_}, cost);
    if (s.ok()) PutOutputs(nullptr);
    return s;
  }
  OpenToServers open(party_, "ciphertext of a reply");
  CircuitChain chain;
  const auto begin_open = [this, &open] {
    opening_.clear();
    for (size_t i = 0; i < logins_; ++i) {
      opening_.insert(opening_.end(), cts_.ciphertext(i).begin(), cts_.ciphertext(i).end());
    }
    open.Reset(opening_);
  };
  chain.Reset({{&cts_, nullptr, cts_.DeclaredCost()},
               {&open, begin_open, CostOfOpening(text_.size())},
               {&reply_mac_, [this, &open] { BeginReplyMac(&open); },
                CostOfReplyMacs(sizes_, adder_, logins_)}});
  s = RunTogether(session, {&chain}, cost);
  if (s.ok()) PutOutputs(&open);
  return s;
}

// text_: of each login the confounder, then the reply.
void LoginBatch::BeginCts(PartyContext& session) {
  const size_t blocks = CtsBlocks(sizes_.text_bytes), reply = blocks - 1;
  SecretVector<SharedBlock> confounders(logins_);
  session.DrawRandom(absl::MakeSpan(confounders));
  text_.resize(logins_ * blocks);
  std::vector<CtsEncryptLane> lanes;
  for (size_t i = 0; i < logins_; ++i) {
    SharedBlock* text = &text_[i * blocks];
    text[0] = confounders[i];
    std::copy_n(&input_.values()[i * reply], reply, text + 1);
    lanes.push_back({keys_.Reply(i), text, sizes_.text_bytes});
  }
  cts_.Reset(lanes, setup_.sbox);
}

// Of the text on shares, or of what was opened.
void LoginBatch::BeginReplyMac(const OpenToServers* opened) {
  const size_t blocks = CtsBlocks(sizes_.text_bytes);
  std::vector<HmacLane> lanes;
  for (size_t i = 0; i < logins_; ++i) {
    HmacLane& lane = lanes.emplace_back();
    lane.states = keys_.StatesOf(keys_.Reply(i));
    if (opened == nullptr) {
      lane.shared_message = &text_[i * blocks];
      lane.bytes = sizes_.text_bytes;
      continue;
    }
    Bytes& hashed = reply_hashed_[i];
    hashed.assign(kIvBytes + blocks * sizeof(Block), 0);
    std::memcpy(&hashed[kIvBytes], &opened->values()[i * blocks], blocks * sizeof(Block));
    hashed.resize(kIvBytes + sizes_.text_bytes);
    lane.public_message = hashed;
  }
  reply_mac_.Reset(lanes, adder_);
}

void LoginBatch::PutOutputs(const OpenToServers* opened) {
  const size_t blocks = CtsBlocks(sizes_.text_bytes);
  for (size_t i = 0; i < logins_; ++i) {
    SharedBlock* out = &outputs_[i * sizes_.outputs];
    out[0] = text_[i * blocks];
    for (size_t b = 0; b < blocks; ++b) {
      out[sizes_.message + b] = opened == nullptr
                                    ? cts_.ciphertext(i)[b]
                                    : SharePublic(opened->values()[i * blocks + b]);
    }
    const auto put = [out](size_t at, absl::Span<const SharedBlock> shares) {
      std::copy(shares.begin(), shares.end(), out + at);
    };
    put(sizes_.mac, reply_mac_.digest(i));
    if (setup_.login->checksum) put(sizes_.checksum, checksum_.digest(i));
    put(sizes_.ticket, ticket_.outputs().subspan(i * kTicketBlocks, kTicketBlocks));
  }
}

}  // namespace mpckdc::bench
