"""Tiny configurations of many architectures: what tests/scoreboards/architectures.py exports, runs and compares.

Each case names a task's class, the settings that make it small, and how its inputs are drawn. Dynamic cases run at the
traced shape and at two others, the others at the traced shape.
"""

import dataclasses

VOCABULARY = 128
TEXT_ENCODER = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0,
}
DECODER = {**TEXT_ENCODER, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
MHA = {**DECODER, "num_key_value_heads": 4}
GPT = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1,
       "eos_token_id": 2}
SEQ2SEQ = {
    "vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "image_size": 32, "patch_size": 8, "num_labels": 3}
SPEECH = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 32,
    "conv_dim": (16, 16, 16), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "feat_extract_norm": "group",
}
CLIP_TEXT = {**TEXT_ENCODER, "projection_dim": 16, "bos_token_id": 1, "eos_token_id": 2}
CLIP_VISION = {**VISION, "projection_dim": 16}


@dataclasses.dataclass
class Case:
    """`prefix` is Transformers' class prefix, `head` the rest of the model class; `atol` bounds every output."""

    name: str
    group: str
    prefix: str
    head: str
    settings: dict
    inputs: str = "text"
    config: str = ""
    atol: float = 1e-4
    dynamic: bool = True


def text(name, prefix, head, settings=None, **more):
    merged = {**TEXT_ENCODER, **(settings or {})}
    return Case(name, "text encoders", prefix, head, {k: v for k, v in merged.items() if v is not None}, **more)


def decoder(name, prefix, settings=None, base=None, head="ForCausalLM", group="decoders", **more):
    return Case(name, group, prefix, head, {**(DECODER if base is None else base), **(settings or {})}, **more)


def experts(*args, **more):
    return decoder(*args, group="mixtures of experts", **more)


def recurrent(*args, **more):
    return decoder(*args, group="state space", **more)


def seq2seq(name, prefix, settings=None, base=None, head="ForConditionalGeneration", **more):
    return Case(name, "encoder-decoders", prefix, head, {**(SEQ2SEQ if base is None else base), **(settings or {})},
                **{"inputs": "seq2seq", **more})


def vision(name, prefix, settings=None, base=None, head="ForImageClassification", **more):
    return Case(name, "vision", prefix, head, {**(VISION if base is None else base), **(settings or {})},
                **{"inputs": "image", "dynamic": False, **more})


def multimodal(name, prefix, settings, *rest, **more):
    return dataclasses.replace(vision(name, prefix, settings, *rest, **more), group="multi-modal")


def speech(name, prefix, settings=None, base=None, head="ForCTC", **more):
    return Case(name, "speech", prefix, head, {**(SPEECH if base is None else base), **(settings or {})},
                **{"inputs": "wave", "dynamic": False, **more})


MOE = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
SSM = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "pad_token_id": 0,
       "bos_token_id": 1, "eos_token_id": 2}
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}
BACKBONE = {"backbone_config": {"model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 32, 32, 32],
                                "depths": [1, 1, 1, 1], "layer_type": "basic",
                                "out_features": ["stage4"]}, "use_timm_backbone": False, "backbone": None}

T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
      "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
QUERIES = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
           "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_queries": 5,
           "num_labels": 3}
VISION_SMALL = {**CLIP_VISION, "image_size": 16, "num_labels": 2}

CASES = [
    text("bert", "Bert", "ForSequenceClassification"),
    text("bert-mlm", "Bert", "ForMaskedLM"),
    text("roberta", "Roberta", "ForMaskedLM"),
    text("xlm-roberta", "XLMRoberta", "ForSequenceClassification"),
    text("camembert", "Camembert", "ForTokenClassification"),
    text("distilbert", "DistilBert", "ForQuestionAnswering",
         {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    text("albert", "Albert", "ForMaskedLM", {"embedding_size": 16}),
    text("electra", "Electra", "ForTokenClassification", {"embedding_size": 16}),
    text("mpnet", "MPNet", "Model"),
    text("deberta", "Deberta", "Model",
         {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16}),
    text("deberta-v2", "DebertaV2", "ForSequenceClassification",
         {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "share_att_key": True,
          "norm_rel_ebd": "layer_norm", "max_relative_positions": 16}),
    text("modernbert", "ModernBert", "ForMaskedLM",
         {"local_attention": 8, "global_attn_every_n_layers": 2, "bos_token_id": 1, "eos_token_id": 2,
          "cls_token_id": 1, "sep_token_id": 2, "reference_compile": False}),
    text("mobilebert", "MobileBert", "Model",
         {"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 1}),
    text("squeezebert", "SqueezeBert", "Model", {"embedding_size": 32}),
    text("convbert", "ConvBert", "Model", {"embedding_size": 32}),
    text("roformer", "RoFormer", "ForMaskedLM"),
    text("ernie", "Ernie", "Model"),
    text("nystromformer", "Nystromformer", "Model", {"num_landmarks": 8, "segment_means_seq_len": 8}),
    text("rembert", "RemBert", "ForMaskedLM", {"input_embedding_size": 16, "output_embedding_size": 16}),
    text("megatron-bert", "MegatronBert", "Model"),
    text("fnet", "FNet", "Model", inputs="ids"),
    text("xlnet", "XLNet", "LMHeadModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48,
                                            "max_position_embeddings": None}),
    text("flaubert", "Flaubert", "Model", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    text("xlm", "XLM", "Model", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    text("funnel", "Funnel", "Model", {"d_model": 32, "d_head": 8, "n_head": 4, "d_inner": 48, "block_sizes": [1, 1],
                                       "num_decoder_layers": 1, "num_hidden_layers": None}),
    text("longformer", "Longformer", "Model", {"attention_window": 4}),
    text("big-bird", "BigBird", "Model", {"attention_type": "original_full"}),
    text("luke", "Luke", "Model", {"entity_vocab_size": 16, "entity_emb_size": 16}),
    text("esm", "Esm", "ForMaskedLM", {"position_embedding_type": "rotary", "mask_token_id": 3}),
    text("ibert", "IBert", "Model", {"quant_mode": False}),
    text("canine", "Canine", "Model", {"num_hash_buckets": 64, "local_transformer_stride": 8, "downsampling_rate": 2}),
    text("eurobert", "EuroBert", "ForMaskedLM", {"num_key_value_heads": 4}),
    text("layoutlm", "LayoutLM", "Model", {"max_2d_position_embeddings": 32}, inputs="layout"),

    decoder("llama", "Llama"),
    decoder("mistral", "Mistral", {"sliding_window": 6}),
    decoder("ministral", "Ministral", {"sliding_window": 6, "head_dim": 8}),
    decoder("qwen2", "Qwen2"),
    decoder("qwen3", "Qwen3", {"head_dim": 8}),
    decoder("gemma", "Gemma", {"head_dim": 8}),
    decoder("gemma2", "Gemma2", {"head_dim": 8, "sliding_window": 6, "query_pre_attn_scalar": 8}),
    decoder("gemma3", "Gemma3", {"head_dim": 8, "sliding_window": 6, "query_pre_attn_scalar": 8},
            config="Gemma3TextConfig"),
    decoder("phi", "Phi", {"partial_rotary_factor": 0.5}, MHA),
    decoder("phi3", "Phi3"),
    decoder("gpt2", "GPT2", base=GPT, head="LMHeadModel"),
    decoder("gpt-bigcode", "GPTBigCode", base=GPT),
    decoder("gpt-neo", "GPTNeo", {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 6,
                                  "attention_types": [[["global", "local"], 1]], "intermediate_size": 48}),
    decoder("gpt-neox", "GPTNeoX", {"partial_rotary_factor": 0.5}, MHA),
    decoder("gptj", "GPTJ", {"rotary_dim": 4}, GPT),
    decoder("codegen", "CodeGen", {"rotary_dim": 4}, GPT),
    decoder("opt", "OPT", {"ffn_dim": 48, "word_embed_proj_dim": 32}, MHA),
    decoder("bloom", "Bloom", {"n_layer": 2, "n_head": 4}),
    decoder("falcon", "Falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    decoder("mpt", "Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2}),
    decoder("starcoder2", "Starcoder2"),
    decoder("cohere", "Cohere"),
    decoder("olmo2", "Olmo2"),
    decoder("stablelm", "StableLm", {"partial_rotary_factor": 0.5}),
    decoder("granite", "Granite"),
    decoder("smollm3", "SmolLM3", {"no_rope_layers": [1, 0]}),
    decoder("glm4", "Glm4", {"head_dim": 8, "partial_rotary_factor": 0.5}),
    decoder("nemotron", "Nemotron", {"head_dim": 8}),
    decoder("exaone4", "Exaone4", {"sliding_window": 6}),
    experts("mixtral", "Mixtral", {"num_local_experts": 4}),
    experts("qwen2-moe", "Qwen2Moe", {**MOE, "shared_expert_intermediate_size": 16}),
    experts("qwen3-moe", "Qwen3Moe", {**MOE, "head_dim": 8}),
    experts("gpt-oss", "GptOss",
            {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "sliding_window": 6}),
    experts("deepseek-v3", "DeepseekV3",
            {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8,
             "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
             "moe_intermediate_size": 16, "first_k_dense_replace": 1}, MHA),
    recurrent("mamba", "Mamba", {"time_step_rank": 4}, SSM, inputs="ids"),
    recurrent("mamba2", "Mamba2", {"num_heads": 8, "head_dim": 8, "n_groups": 2, "expand": 2, "chunk_size": 8}, SSM,
            inputs="ids"),
    experts("deepseek-v2", "DeepseekV2",
            {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8,
             "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1,
             "moe_intermediate_size": 16, "first_k_dense_replace": 1}, MHA),
    experts("olmoe", "Olmoe", {"num_experts": 4, "num_experts_per_tok": 2}),
    experts("granite-moe", "GraniteMoe", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    experts("phimoe", "Phimoe", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    experts("ernie4-5-moe", "Ernie4_5_Moe",
            {"moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 1, "moe_intermediate_size": 16,
             "moe_layer_start_index": 0}),
    experts("glm4-moe", "Glm4Moe",
            {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
             "moe_intermediate_size": 16, "first_k_dense_replace": 1, "head_dim": 8, "partial_rotary_factor": 0.5}),
    recurrent("jamba", "Jamba",
            {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
             "expert_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False}),
    recurrent("falcon-mamba", "FalconMamba", {"time_step_rank": 4}, SSM, inputs="ids"),
    recurrent("bamba", "Bamba",
            {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_expand": 2,
             "mamba_chunk_size": 8, "attn_layer_indices": [1]}),
    recurrent("rwkv", "Rwkv", {"attention_hidden_size": 32}, SSM, inputs="ids"),
    recurrent("recurrent-gemma", "RecurrentGemma",
            {"lru_width": 32, "attention_window_size": 6, "block_types": ["recurrent", "attention"]}),
    decoder("olmo", "Olmo"),
    decoder("olmo3", "Olmo3", {"sliding_window": 6}),
    decoder("cohere2", "Cohere2", {"sliding_window": 6}),
    decoder("helium", "Helium", {"head_dim": 8}),
    decoder("arcee", "Arcee"),
    decoder("apertus", "Apertus"),
    decoder("seed-oss", "SeedOss", {"head_dim": 8}),
    decoder("hunyuan-v1-dense", "HunYuanDenseV1", {"head_dim": 8}),
    decoder("ernie4-5", "Ernie4_5", {"head_dim": 8}),
    decoder("persimmon", "Persimmon", {"partial_rotary_factor": 0.5}, MHA),
    decoder("diffllama", "DiffLlama"),
    decoder("bitnet", "BitNet"),
    decoder("biogpt", "BioGpt", base=TEXT_ENCODER),
    decoder("xglm", "XGLM", {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48}),
    decoder("ctrl", "CTRL", {**GPT, "dff": 48}, {}, head="LMHeadModel"),
    decoder("openai-gpt", "OpenAIGPT", base=GPT, head="LMHeadModel"),
    recurrent("lfm2", "Lfm2", {"layer_types": ["conv", "full_attention"]}),

    seq2seq("t5", "T5", T5, {}),
    seq2seq("mt5", "MT5", T5, {}),
    seq2seq("bart", "Bart"),
    seq2seq("mbart", "MBart"),
    seq2seq("marian", "Marian", head="MTModel"),
    seq2seq("pegasus", "Pegasus"),
    seq2seq("m2m-100", "M2M100"),
    seq2seq("blenderbot", "Blenderbot"),
    seq2seq("whisper", "Whisper", {"max_source_positions": 16, "max_target_positions": 32, "num_mel_bins": 8},
            inputs="speech2seq", dynamic=False),
    seq2seq("speech-to-text", "Speech2Text",
            {"max_source_positions": 64, "max_target_positions": 32, "input_feat_per_channel": 8, "conv_channels": 16},
            inputs="features2seq", dynamic=False),
    seq2seq("umt5", "UMT5", T5, {}),
    seq2seq("longt5", "LongT5", {**T5, "local_radius": 4}, {}),
    seq2seq("switch-transformers", "SwitchTransformers",
            {**T5, "num_decoder_layers": 2, "num_experts": 4, "num_sparse_encoder_layers": 1,
             "num_sparse_decoder_layers": 1}, {}),
    seq2seq("plbart", "PLBart"),
    seq2seq("led", "LED", {"attention_window": 4, "max_encoder_position_embeddings": 64,
                           "max_decoder_position_embeddings": 64}),
    seq2seq("prophetnet", "ProphetNet",
            {"vocab_size": VOCABULARY, "hidden_size": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
             "num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4,
             "num_decoder_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
             "eos_token_id": 2, "decoder_start_token_id": 1, "ngram": 2}, {}),
    seq2seq("moonshine", "Moonshine",
            {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "encoder_num_hidden_layers": 2,
             "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
             "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
             "decoder_start_token_id": 1}, {}, inputs="wave2seq", dynamic=False),

    vision("vit", "ViT"),
    vision("deit", "DeiT"),
    vision("beit", "Beit", {"use_relative_position_bias": True}),
    vision("swin", "Swin", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4],
                            "window_size": 4, "num_labels": 3}, {}),
    vision("swinv2", "Swinv2", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1],
                                "num_heads": [2, 4], "window_size": 4, "num_labels": 3}, {}),
    vision("convnext", "ConvNext", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 3}, {}),
    vision("convnextv2", "ConvNextV2", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 3},
           {}),
    vision("resnet", "ResNet", RESNET, {"num_labels": 3}),
    vision("mobilenet-v2", "MobileNetV2", {"depth_multiplier": 0.25, "min_depth": 8, "num_labels": 3}, {}),
    vision("efficientnet", "EfficientNet",
           {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "image_size": 32, "num_labels": 3},
           {}),
    vision("mobilevit", "MobileViT", {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32],
                                      "intermediate_size": 48}),
    vision("segformer", "Segformer", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                                      "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16, "num_labels": 3},
           {}, head="ForSemanticSegmentation", inputs="image64"),
    vision("dinov2", "Dinov2"),
    vision("dinov3-vit", "DINOv3ViT", head="Model"),
    vision("pvt", "Pvt", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                          "num_attention_heads": [1, 2, 2, 4], "image_size": 64, "num_labels": 3}, {},
           inputs="image64"),
    vision("poolformer", "PoolFormer", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "num_labels": 3}, {},
           inputs="image64"),
    vision("levit", "Levit", {"image_size": 64, "hidden_sizes": [16, 32, 32], "num_attention_heads": [2, 4, 4],
                              "depths": [1, 1, 1], "key_dim": [8, 8, 8], "num_labels": 3}, {}, inputs="image64"),
    vision("detr", "Detr", {**BACKBONE, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
                            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
                            "decoder_ffn_dim": 48, "num_queries": 5, "num_labels": 3}, {}, head="ForObjectDetection",
           inputs="image64"),
    vision("yolos", "Yolos", {"image_size": [32, 32], "num_detection_tokens": 5}, head="ForObjectDetection"),
    vision("dpt", "DPT", {"is_hybrid": False, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
                          "neck_hidden_sizes": [8, 8, 16, 16],
                          "fusion_hidden_size": 16, "reassemble_factors": [4, 2, 1, 0.5]}, head="ForDepthEstimation"),
    vision("sam", "Sam",
           {"vision_config": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 48,
                              "output_channels": 16, "image_size": 64, "patch_size": 16, "window_size": 2,
                              "global_attn_indexes": [1],
                              "num_pos_feats": 8},
            "prompt_encoder_config": {"hidden_size": 16, "image_size": 64, "patch_size": 16, "mask_input_channels": 4},
            "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
                                    "iou_head_hidden_dim": 16}}, {}, head="Model", inputs="sam", atol=5e-4),
    vision("regnet", "RegNet", {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8,
                                "num_labels": 3}, {}),
    vision("mobilenet-v1", "MobileNetV1", {"depth_multiplier": 0.25, "num_labels": 3}, {}),
    vision("bit", "Bit", {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1], "num_groups": 4,
                          "num_labels": 3}, {}),
    vision("cvt", "Cvt", {"embed_dim": [16, 32, 32], "num_heads": [1, 2, 2], "depth": [1, 2, 3], "num_labels": 3}, {},
           inputs="image64"),
    vision("focalnet", "FocalNet", {"image_size": 32, "embed_dim": 16, "depths": [1, 1], "hidden_sizes": [16, 32],
                                    "focal_levels": [2, 2], "focal_windows": [3, 3], "num_labels": 3}, {}),
    vision("swiftformer", "SwiftFormer", {"depths": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32], "num_labels": 3}, {},
           inputs="image64"),
    vision("hiera", "Hiera", {"embed_dim": 16, "image_size": [32, 32], "patch_size": [7, 7], "patch_stride": [4, 4],
                              "patch_padding": [3, 3], "depths": [1, 1], "num_heads": [1, 2], "num_query_pool": 1,
                              "masked_unit_size": [2, 2], "embed_dim_multiplier": 2.0, "num_labels": 3}, {}),
    vision("pvt-v2", "PvtV2", {"image_size": 64, "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                               "num_attention_heads": [1, 2, 2, 4], "num_labels": 3}, {}, inputs="image64"),
    vision("data2vec-vision", "Data2VecVision", {"use_relative_position_bias": True}),
    vision("ijepa", "IJepa"),
    vision("glpn", "GLPN", {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
                            "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16}, {},
           head="ForDepthEstimation", inputs="image64"),
    vision("conditional-detr", "ConditionalDetr", {**BACKBONE, **QUERIES}, {}, head="ForObjectDetection",
           inputs="image64"),
    vision("table-transformer", "TableTransformer", {**BACKBONE, **QUERIES}, {}, head="ForObjectDetection",
           inputs="image64"),
    vision("deformable-detr", "DeformableDetr",
           {**BACKBONE, **QUERIES, "decoder_layers": 2, "num_feature_levels": 1, "encoder_n_points": 2,
            "decoder_n_points": 2}, {},
           head="ForObjectDetection", inputs="image64"),
    vision("vivit", "Vivit", {"num_frames": 4, "tubelet_size": [2, 8, 8]}, head="ForVideoClassification",
           inputs="video"),
    vision("timesformer", "Timesformer", {"num_frames": 4}, head="ForVideoClassification", inputs="video"),
    vision("videomae", "VideoMAE", {"num_frames": 4}, head="ForVideoClassification", inputs="video"),

    multimodal("vilt", "Vilt", {**TEXT_ENCODER, "image_size": 32, "patch_size": 8, "type_vocab_size": 2,
                            "max_image_length": -1}, {}, head="Model", inputs="image-text"),
    multimodal("blip", "Blip", {"text_config": {**CLIP_TEXT, "encoder_hidden_size": 32, "sep_token_id": 2},
                            "vision_config": CLIP_VISION, "projection_dim": 16}, {}, head="Model",
           inputs="image-text"),
    multimodal("chinese-clip", "ChineseCLIP", {"text_config": TEXT_ENCODER, "vision_config": CLIP_VISION,
                                           "projection_dim": 16}, {}, head="Model", inputs="image-text"),
    multimodal("altclip", "AltCLIP", {"text_config": {**TEXT_ENCODER, "project_dim": 16}, "vision_config": CLIP_VISION,
                                  "projection_dim": 16}, {}, head="Model", inputs="image-text"),
    multimodal("git", "Git", {**TEXT_ENCODER, "vision_config": CLIP_VISION, "bos_token_id": 1, "eos_token_id": 2}, {},
           head="ForCausalLM", inputs="image-text"),
    multimodal("llava", "Llava",
           {"vision_config": {"model_type": "clip_vision_model", **VISION_SMALL},
            "text_config": {"model_type": "llama", **DECODER}, "image_token_index": VOCABULARY - 1,
            "vision_feature_layer": -1}, {}, head="ForConditionalGeneration", inputs="image-tokens"),
    multimodal("paligemma", "PaliGemma",
           {"vision_config": {"model_type": "siglip_vision_model", **VISION_SMALL},
            "text_config": {"model_type": "gemma", **DECODER, "head_dim": 8}, "image_token_index": VOCABULARY - 1,
            "projection_dim": 32, "hidden_size": 32}, {}, head="ForConditionalGeneration", inputs="image-tokens"),
    multimodal("clip", "CLIP", {"text_config": CLIP_TEXT, "vision_config": CLIP_VISION, "projection_dim": 16}, {},
           head="Model", inputs="image-text"),
    multimodal("siglip", "Siglip", {"text_config": CLIP_TEXT, "vision_config": VISION}, {}, head="Model",
           inputs="image-text"),
    multimodal("clipseg", "CLIPSeg",
           {"text_config": CLIP_TEXT, "vision_config": CLIP_VISION, "projection_dim": 16, "extract_layers": [0, 1],
            "reduce_dim": 16, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 32}, {},
           head="ForImageSegmentation", inputs="image-text"),

    speech("wav2vec2", "Wav2Vec2"),
    speech("hubert", "Hubert"),
    speech("wavlm", "WavLM", {"num_buckets": 16, "max_bucket_distance": 32}),
    speech("unispeech", "UniSpeech"),
    speech("data2vec-audio", "Data2VecAudio", {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 3}),
    speech("sew", "SEW", {"squeeze_factor": 2}),
    speech("ast", "AST", {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                          "patch_size": 8, "frequency_stride": 4, "time_stride": 4, "max_length": 32,
                          "num_mel_bins": 16, "num_labels": 3}, {}, head="ForAudioClassification",
           inputs="spectrogram"),
    speech("sew-d", "SEWD", {"squeeze_factor": 2, "position_buckets": 8, "max_position_embeddings": 64}),
    speech("unispeech-sat", "UniSpeechSat"),
    speech("wav2vec2-conformer", "Wav2Vec2Conformer",
           {"position_embeddings_type": "rotary", "conv_depthwise_kernel_size": 7}),
    speech("wav2vec2-bert", "Wav2Vec2Bert",
           {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": 32, "feature_projection_input_dim": 16, "conv_depthwise_kernel_size": 7}, {},
           inputs="features"),
    speech("encodec", "Encodec",
           {"num_filters": 4, "hidden_size": 16, "codebook_size": 16, "upsampling_ratios": [4, 2],
            "num_lstm_layers": 1, "target_bandwidths": [12.0]}, {}, head="Model", inputs="channel-wave"),
    speech("dac", "Dac", {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 32,
                          "n_codebooks": 2, "codebook_size": 16, "codebook_dim": 4}, {}, head="Model",
           inputs="channel-wave"),

    Case("patchtst", "time series", "PatchTST", "ForPrediction",
         {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 32,
          "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "prediction_length": 4}, "series",
         dynamic=False),
    Case("patchtsmixer", "time series", "PatchTSMixer", "ForPrediction",
         {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 16,
          "num_layers": 2, "prediction_length": 4}, "series", dynamic=False),
]
