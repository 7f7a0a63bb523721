/// Functions of angles, in radians. They call the C library, since the standard library has none and pure modules import nothing.
package enum Trigonometry {
    package static func sine(_ angle: Double) -> Double { sin(angle) }
    package static func cosine(_ angle: Double) -> Double { cos(angle) }
    /// The angle of the point (x, y), -π…π.
    package static func arcTangent(_ y: Double, _ x: Double) -> Double { atan2(y, x) }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif
