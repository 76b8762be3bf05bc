// The yardstick: a hand-written, single-threaded search of the benchmark's world and rule.
//
// The rule is AlphaZero's on [0, 1]: score(a) = (q(a) + 1) / 2 + C(s) sqrt(N(s)) P(a) / (1 + N(a)), an unvisited
// edge reading `fpu`. Each edge keeps P / (1 + N) and the mapped q, which change only when the edge is visited, so
// that choosing is one fused multiply-add over two contiguous rows. The world is that of world.py, bit for bit.
//
// `tree_by_tree` = 0 advances all trees by one simulation at a time, which is what a search must do whose network
// takes the whole batch; 1 finishes a tree before it begins the next, which keeps it in the cache.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr int kLane = 16;          // floats in a 512-bit register: rows are padded to whole lanes
constexpr float kNever = -1e30f;   // the score of padding (-ffast-math knows no infinity)
constexpr float kInit = 1.25f, kBase = 19652.0f;

uint32_t mix(uint32_t h) {  // MurmurHash3's finaliser
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}

float unit(uint32_t h) { return static_cast<float>(h >> 8) * 0x1p-24f; }  // [0, 1)

uint32_t step(uint32_t state, uint32_t action) { return mix(state + (action + 1) * 0x9e3779b1u); }

float value_of(uint32_t state) { return unit(mix(state ^ 0x68bc21ebu)) * 2.0f - 1.0f; }

template <typename T>
struct Free {
  void operator()(T* p) const { std::free(p); }
};

template <typename T>
using Array = std::unique_ptr<T[], Free<T>>;

template <typename T>
Array<T> allocate(size_t n) {  // aligned, untouched
  size_t bytes = (n * sizeof(T) + 63) / 64 * 64;
  return Array<T>(static_cast<T*>(std::aligned_alloc(64, bytes)));
}

class Forest {
 public:
  Forest(int batch, int actions, int capacity, float scale, float fpu)
      : actions_(actions), stride_((actions + kLane - 1) / kLane * kLane), capacity_(capacity), scale_(scale),
        fpu_(fpu), share_(allocate<float>(edges(batch))), mapped_(allocate<float>(edges(batch))),
        prior_(allocate<float>(edges(batch))), child_(allocate<int32_t>(edges(batch))),
        visits_(allocate<int32_t>(edges(batch))), node_(allocate<Node>(size_t(batch) * capacity)),
        score_(allocate<float>(stride_)), path_(capacity) {}

  void plant(int tree, uint32_t state) { expand(slot(tree, 0), state); }

  // Run one simulation whose node goes to slot `next`; return the depth it was made at.
  int simulate(int tree, int next) {
    size_t at = slot(tree, 0);
    for (int depth = 0;; ++depth) {
      int action = choose(at);
      path_[depth] = {at, action};
      int32_t child = child_[at * stride_ + action];
      if (child == 0) {
        size_t leaf = slot(tree, next);
        child_[at * stride_ + action] = next;
        expand(leaf, step(node_[at].state, action));
        back_up(leaf, depth);
        return depth + 1;
      }
      at = slot(tree, child);
    }
  }

  void root_visits(int tree, int32_t* out) const {
    const int32_t* row = &visits_[slot(tree, 0) * stride_];
    for (int a = 0; a < actions_; ++a) out[a] = row[a];
  }

 private:
  struct Node {
    float value;  // mean of the returns, view of the player to move
    float visits;
    uint32_t state;
  };
  struct Edge {
    size_t node;
    int action;
  };

  size_t edges(int batch) const { return size_t(batch) * capacity_ * stride_; }
  size_t slot(int tree, int node) const { return size_t(tree) * capacity_ + node; }

  int choose(size_t at) {
    float n = node_[at].visits;
    float c = std::sqrt(n) * (kInit + std::log((1.0f + n + kBase) / kBase));
    const float* share = &share_[at * stride_];
    const float* mapped = &mapped_[at * stride_];
    float* score = score_.get();
    float best = kNever;
#pragma omp simd reduction(max : best) aligned(share, mapped, score : 64)
    for (int a = 0; a < stride_; ++a) {
      score[a] = mapped[a] + c * share[a];
      best = score[a] > best ? score[a] : best;
    }
    // The first lane that holds the best score, then the first place in it.
    int a = 0;
    for (;; a += kLane) {
      int hit = 0;
#pragma omp simd reduction(| : hit)
      for (int i = 0; i < kLane; ++i) hit |= score[a + i] == best;
      if (hit) break;
    }
    while (score[a] != best) ++a;
    return a;
  }

  void expand(size_t at, uint32_t state) {
    node_[at] = {value_of(state), 1.0f, state};
    float* prior = &prior_[at * stride_];
    float* share = &share_[at * stride_];
    float* mapped = &mapped_[at * stride_];
    int32_t* child = &child_[at * stride_];
    int32_t* visits = &visits_[at * stride_];
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int a = 0; a < actions_; ++a) {
      float logit = unit(mix(state ^ (uint32_t(a + 1) * 0x85ebca77u))) * scale_;
      prior[a] = std::exp(logit - scale_);
      sum += prior[a];
    }
    float inverse = 1.0f / sum;
#pragma omp simd
    for (int a = 0; a < actions_; ++a) {
      prior[a] *= inverse;
      share[a] = prior[a];
      mapped[a] = fpu_;
      child[a] = 0;
      visits[a] = 0;
    }
    for (int a = actions_; a < stride_; ++a) {
      share[a] = 0.0f;
      mapped[a] = kNever;
    }
  }

  void back_up(size_t leaf, int depth) {
    float value = node_[leaf].value;
    float q = -node_[leaf].value;
    for (int level = depth; level >= 0; --level) {
      auto [at, action] = path_[level];
      size_t edge = at * stride_ + action;
      int32_t visits = ++visits_[edge];
      share_[edge] = prior_[edge] / static_cast<float>(1 + visits);
      mapped_[edge] = (q + 1.0f) * 0.5f;
      value = -value;
      Node& node = node_[at];
      node.value = (node.value * node.visits + value) / (node.visits + 1.0f);
      node.visits += 1.0f;
      q = -node.value;
    }
  }

  int actions_, stride_, capacity_;
  float scale_, fpu_;
  Array<float> share_, mapped_, prior_;
  Array<int32_t> child_, visits_;
  Array<Node> node_;
  Array<float> score_;
  std::vector<Edge> path_;
};

}  // namespace

// `depths [simulations]` receives the sum over trees of the depth reached, `deepest` the largest of them.
extern "C" void search(const uint32_t* roots, int batch, int actions, int simulations, float scale, float fpu,
                       int tree_by_tree, int32_t* visits, int32_t* depths, int32_t* deepest) {
  Forest forest(batch, actions, simulations + 1, scale, fpu);
  for (int tree = 0; tree < batch; ++tree) forest.plant(tree, roots[tree]);
  for (int i = 0; i < simulations; ++i) depths[i] = deepest[i] = 0;
  auto simulate = [&](int tree, int i) {
    int depth = forest.simulate(tree, i + 1);
    depths[i] += depth;
    deepest[i] = depth > deepest[i] ? depth : deepest[i];
  };
  if (tree_by_tree) {
    for (int tree = 0; tree < batch; ++tree)
      for (int i = 0; i < simulations; ++i) simulate(tree, i);
  } else {
    for (int i = 0; i < simulations; ++i)
      for (int tree = 0; tree < batch; ++tree) simulate(tree, i);
  }
  for (int tree = 0; tree < batch; ++tree) forest.root_visits(tree, visits + size_t(tree) * actions);
}
