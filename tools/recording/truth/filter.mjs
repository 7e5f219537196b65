/** A frame's bloom filter, read by the library's code. */

// The package does not export the default filter's class and options.
const library = import.meta.resolve("@waku/sds");
const { DefaultBloomFilter } = await import(
  new URL("./bloom_filter/bloom.js", library)
);
const { DEFAULT_BLOOM_FILTER_OPTIONS } = await import(
  new URL("./message_channel/message_channel.js", library)
);

export class Filter {
  #bloom;
  #found = new Map();

  /** @param {Uint8Array|undefined} bytes as on the wire; undefined: an empty filter */
  constructor(bytes) {
    this.#bloom = new DefaultBloomFilter(DEFAULT_BLOOM_FILTER_OPTIONS);
    if (bytes) {
      this.#bloom = DefaultBloomFilter.fromBytes(bytes, DEFAULT_BLOOM_FILTER_OPTIONS);
    }
  }

  /** @returns {boolean} whether the filter contains the message id */
  holds(id) {
    if (!this.#found.has(id)) this.#found.set(id, this.#bloom.lookup(id));
    return this.#found.get(id);
  }

  /** @returns {number} (bits set / bits) ^ hashes, in [0, 1] */
  falsePositiveRate() {
    const bitsSet = this.#bloom.data.reduce((sum, word) => sum + onesIn(word), 0);
    return (bitsSet / this.#bloom.totalBits) ** this.#bloom.kHashes;
  }
}

function onesIn(word) {
  return BigInt.asUintN(64, word).toString(2).replaceAll("0", "").length;
}
