/// Kafka's default partitioner, murmur2 of the key's bytes, so that other producers choose the same partitions.
package enum Partitioner {
    /// - Returns: 0 to `partitions - 1`.
    package static func partition(of key: some Collection<UInt8>, partitions: Int32) -> Int32 {
        Int32(bitPattern: murmur2(Array(key)) & 0x7fff_ffff) % partitions
    }

    package static func murmur2(_ data: [UInt8]) -> UInt32 {
        let multiplier: UInt32 = 0x5bd1_e995
        var hash = 0x9747_b28c ^ UInt32(data.count)
        var index = 0
        while index + 4 <= data.count {
            var word =
                UInt32(data[index]) | UInt32(data[index + 1]) << 8 | UInt32(data[index + 2]) << 16
                | UInt32(data[index + 3]) << 24
            word = word &* multiplier
            word ^= word >> 24
            word = word &* multiplier
            hash = (hash &* multiplier) ^ word
            index += 4
        }
        let rest = data.count - index
        if rest >= 3 { hash ^= UInt32(data[index + 2]) << 16 }
        if rest >= 2 { hash ^= UInt32(data[index + 1]) << 8 }
        if rest >= 1 {
            hash ^= UInt32(data[index])
            hash = hash &* multiplier
        }
        hash ^= hash >> 13
        hash = hash &* multiplier
        hash ^= hash >> 15
        return hash
    }
}
