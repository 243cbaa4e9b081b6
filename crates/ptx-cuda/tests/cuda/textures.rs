//! Arrays, and kernels that read them through texture and surface objects.

use std::ffi::{CString, c_int, c_void};

use super::Cuda;

/// Thread x reads between columns x and x + 1 of row 1, and writes what it found to the surface.
const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry read(.param .u64 texture, .param .u64 surface)
{
    .reg .u32 %r<3>;
    .reg .f32 %f<7>;
    .reg .u64 %d<2>;
    ld.param.u64 %d0, [texture];
    ld.param.u64 %d1, [surface];
    mov.u32 %r0, %tid.x;
    cvt.rn.f32.u32 %f0, %r0;
    add.f32 %f1, %f0, 0f3F800000;
    mov.f32 %f2, 0f3FC00000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%d0, {%f1, %f2}];
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, 0;
    sust.b.2d.b32.trap [%d1, {%r1, %r2}], %f3;
    ret;
}
";

/// `CUDA_ARRAY_DESCRIPTOR` of floats.
#[repr(C)]
struct ArrayDesc(usize, usize, u32, u32);

/// `CUDA_RESOURCE_DESC` of an array.
#[repr(C)]
struct ResourceDesc(u32, usize, [u64; 20]);

/// `CUDA_TEXTURE_DESC`: clamped, filtered.
#[repr(C)]
struct TextureDesc([i32; 3], i32, [u32; 32]);

#[test]
fn kernels_read_textures_and_write_surfaces() {
    let cuda = Cuda::load();
    let text = CString::new(PTX).expect("no zero");
    let (mut context, mut module, mut function) = (0usize, 0usize, 0usize);
    let (mut array, mut texture, mut surface) = (0usize, 0u64, 0u64);
    let rows: [f32; 8] = [0., 1., 2., 3., 10., 20., 30., 50.];
    let mut found = [0f32; 4];
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let device: c_int = 0;
        assert_eq!(cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, device), 0);
        let loaded = cuda.f2("cuModuleLoadData", &raw mut module, text.as_ptr());
        assert_eq!(loaded, 0);
        let name = c"read".as_ptr();
        let got = cuda.f3("cuModuleGetFunction", &raw mut function, module, name);
        assert_eq!(got, 0);
        let desc = ArrayDesc(4, 2, 0x20, 1);
        assert_eq!(
            cuda.f2("cuArrayCreate_v2", &raw mut array, &raw const desc),
            0
        );
        // CUDA_MEMCPY2D: from host memory with rows of 16 bytes to the array.
        let from = [0, 0, 1, rows.as_ptr().expose_provenance(), 0, 0, 16];
        let to = [0, 0, 3, 0, 0, array, 0];
        let copy: Vec<usize> = from.into_iter().chain(to).chain([16, 2]).collect();
        assert_eq!(cuda.f1("cuMemcpy2D_v2", copy.as_ptr()), 0);
        let resource = ResourceDesc(0, array, [0; 20]);
        let reading = TextureDesc([1; 3], 1, [0; 32]);
        let made = cuda.f4(
            "cuTexObjectCreate",
            &raw mut texture,
            &raw const resource,
            &raw const reading,
            std::ptr::null::<c_void>(),
        );
        assert_eq!(made, 0);
        let made = cuda.f2("cuSurfObjectCreate", &raw mut surface, &raw const resource);
        assert_eq!(made, 0);
        let args: [*const c_void; 2] = [(&raw const texture).cast(), (&raw const surface).cast()];
        let launched = cuda.launch_function(function, 4, &args);
        assert_eq!(launched, 0);
        let got = cuda.f4(
            "cuMemcpyAtoH_v2",
            found.as_mut_ptr(),
            array,
            0usize,
            16usize,
        );
        assert_eq!(got, 0);
        assert_eq!(cuda.f1("cuTexObjectDestroy", texture), 0);
        assert_eq!(cuda.f1("cuTexObjectDestroy", texture), 1, "twice");
        assert_eq!(cuda.f1("cuArrayDestroy", array), 0);
    }
    assert_eq!(found, [15., 25., 40., 50.]);
}
